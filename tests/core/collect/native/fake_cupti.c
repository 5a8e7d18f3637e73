/* A libcupti for machines without a driver: it hands out records that a test fed it, under a lock of its own, as the real
 * one calls its client's callbacks while it holds its lock. Built with -Wl,-soname,libcupti.so.13. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KINDS = 64, NO_MORE = 12, TAKEN = 39 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*requested)(uint8_t **, size_t *, size_t *);
static void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t);
static uint8_t *buffer;
static size_t room, used, dropped, sizes[KINDS];
static int enabled[KINDS], thread_ids, subscribed;
static __thread uint64_t stack[64];
static __thread int depth;

int cuptiGetVersion(uint32_t *v) { const char *t = getenv("FAKE_CUPTI_VERSION"); *v = t ? (uint32_t)atoi(t) : 130000; return 0; }
int cuptiGetTimestamp(uint64_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *t = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec + 1000; /* a microsecond ahead */
  return 0;
}
int cuptiActivityRegisterCallbacks(void *a, void *b) {
  pthread_mutex_lock(&lock);
  memcpy(&requested, &a, sizeof a);
  memcpy(&completed, &b, sizeof b);
  pthread_mutex_unlock(&lock);
  return 0;
}
int cuptiActivityEnable(uint32_t kind) { enabled[kind]++; return 0; }
int cuptiActivityDisable(uint32_t kind) { enabled[kind] = 0; return 0; }
int cuptiGetThreadIdType(int *type) { *type = thread_ids; return 0; }
int cuptiSetThreadIdType(int type) { thread_ids = type; return 0; }
int cuptiSubscribe(void **subscriber, void *callback, void *data) {
  (void)callback, (void)data;
  if (getenv("FAKE_CUPTI_TAKEN")) return TAKEN;
  *subscriber = &subscribed;
  return subscribed++, 0;
}
int cuptiUnsubscribe(void *subscriber) { return subscriber != &subscribed || subscribed-- != 1; }
int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) { (void)kind; stack[depth++] = id; return 0; }
int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *id) { (void)kind; *id = stack[--depth]; return 0; }
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count) {
  (void)context, (void)stream;
  *count = dropped;
  dropped = 0;
  return 0;
}
int cuptiActivityGetNextRecord(uint8_t *at, size_t valid, uint8_t **record) {
  uint8_t *next = at;
  uint32_t kind;
  if (*record) memcpy(&kind, *record, 4), next = *record + sizes[kind];
  if (next >= at + valid) return NO_MORE;
  *record = next;
  return 0;
}
static void give_back(void) {
  if (buffer && completed) completed(NULL, 0, buffer, room, used);
  buffer = NULL;
  used = room = 0;
}
int cuptiActivityFlushAll(uint32_t flag) {
  (void)flag;
  pthread_mutex_lock(&lock);
  give_back();
  pthread_mutex_unlock(&lock);
  return 0;
}

/* ---- what tests call ---- */
void fake_size(uint32_t kind, size_t size) { sizes[kind] = size; }
int fake_enabled(uint32_t kind) { return enabled[kind]; }
int fake_thread_ids(void) { return thread_ids; }
int fake_subscribed(void) { return subscribed; }
uint64_t fake_step(void) { return depth ? stack[depth - 1] : UINT64_MAX; }
void fake_feed(const uint8_t *records, uint32_t count) {
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t kind;
    memcpy(&kind, records, 4);
    size_t size = sizes[kind];
    if (enabled[kind]) {
      if (buffer && used + size > room) give_back();
      if (!buffer && requested) {
        size_t most;
        requested(&buffer, &room, &most);
      }
      if (buffer) memcpy(buffer + used, records, size), used += size;
      else dropped++;
    }
    records += size;
  }
  pthread_mutex_unlock(&lock);
}
static struct { const uint8_t *records; uint32_t count; } load;
static void *keep_feeding(void *nothing) {
  for (;;) fake_feed(load.records, load.count), usleep(50);
  return nothing;
}
void fake_load(const uint8_t *records, uint32_t count, int threads) {
  pthread_t thread;
  load.records = records;
  load.count = count;
  while (threads--) pthread_create(&thread, NULL, keep_feeding, NULL);
}
