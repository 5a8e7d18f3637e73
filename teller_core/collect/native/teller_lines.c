/* Lines of nvtx-PID.tsv: from the threads that say them to the disk.
 *
 * A thread writes its lines into a buffer of its own, under a lock that only the flushing thread ever shares and only for
 * as long as it swaps a pointer: no program waits for a disk or for another of its threads. Full buffers queue for the
 * flushing thread; what comes faster than the disk takes is lost and counted (lines `L`). Files hold whole lines, five
 * flushes a second, so that a killed process leaves all but its last moments. A forked child opens its own file at its
 * first event. With TELLER_CAPTURE_BYTES or TELLER_CAPTURE_SECONDS the file is a ring of segments.
 */
#include "teller_inject.h"

enum { ROOM = 32 << 10, MOST_PENDING = 1024, MOST_NAMES = 256 << 10 };

typedef struct buffer {
  struct buffer *next;
  uint64_t number; /* rises with time: the order in which a thread filled its buffers */
  uint32_t used, lines;
  char text[ROOM];
} buffer_t;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static uint64_t life = 1; /* of this process: a forked child has a new one */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER; /* threads, names, registered texts */
static pthread_mutex_t flushing = PTHREAD_MUTEX_INITIALIZER;
static thread_t *threads;
static buffer_t *full;
static uint64_t next_number, lost;
static uint32_t pending;
static int running;
static texts_t registered;
static char *names; /* lines T and K: each segment repeats them */
static size_t names_used;

static file_t file = {.number = -1};
static int torn;
static uint32_t segment;
static uint64_t written, opened_at, told_lost, anchored_at;
static size_t names_written;

static __thread thread_t *mine;
static __thread char ended;

static int put(const char *text, size_t size) {
  while (size) {
    ssize_t done = teller_write(&file, text, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return -1;
    written += (uint64_t)done;
    text += done;
    size -= (size_t)done;
    if (size) torn = 1; /* until the rest is written too */
  }
  torn = 0;
  return 0;
}

static int put_lines(const char *text, size_t size) {
  if (torn && put("\n", 1)) return torn = 1, -1;
  return put(text, size);
}

static void anchor(void) {
  char line[96];
  int n = snprintf(line, sizeof line, "A\t%llu\t%llu\t%d\n", (unsigned long long)teller_now(CLOCK_MONOTONIC),
                   (unsigned long long)teller_now(CLOCK_REALTIME), (int)getpid());
  put_lines(line, (size_t)n);
  anchored_at = teller_now(CLOCK_MONOTONIC);
}

static void path_of(char *path, size_t room, uint32_t number) {
  if (teller_settings()->bytes || teller_settings()->seconds)
    snprintf(path, room, "%s/nvtx-%d-%04u.tsv", teller_settings()->folder, (int)getpid(), number);
  else
    snprintf(path, room, "%s/nvtx-%d.tsv", teller_settings()->folder, (int)getpid());
}

static void open_file(void) {
  char path[4096];
  teller_close(&file);
  if (++segment > SEGMENTS) {
    path_of(path, sizeof path, segment - SEGMENTS);
    unlink(path);
  }
  path_of(path, sizeof path, segment);
  int failed = teller_open(&file, path, O_WRONLY | O_CREAT | O_APPEND);
  written = names_written = torn = 0;
  opened_at = teller_now(CLOCK_MONOTONIC);
  if (failed) segment--;
  else anchor();
}

static int segment_is_over(size_t coming) {
  if (teller_settings()->bytes && written + coming > teller_settings()->bytes / SEGMENTS && written > 256) return 1;
  return teller_settings()->seconds && teller_now(CLOCK_MONOTONIC) - opened_at > teller_settings()->seconds * 1000000000ull / SEGMENTS;
}

static int in_order(const void *a, const void *b) {
  uint64_t x = (*(buffer_t *const *)a)->number, y = (*(buffer_t *const *)b)->number;
  return x < y ? -1 : x > y;
}

static void hold(thread_t *t) {
  for (int spins = 0; __atomic_exchange_n(&t->busy, 1, __ATOMIC_ACQUIRE); spins++)
    if (spins > 64) sched_yield();
}

static void release(thread_t *t) { __atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE); }

static void queue(buffer_t *b) {
  __atomic_fetch_add(&pending, 1, __ATOMIC_RELAXED);
  b->next = __atomic_load_n(&full, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&full, &b->next, b, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

/* Queue what every thread has begun. Buffers that a thread filled before are queued already, so none is overtaken. */
static void gather(void) {
  pthread_mutex_lock(&listing);
  for (thread_t **at = &threads, *t; (t = *at);) {
    hold(t);
    buffer_t *b = t->buffer && t->buffer->used ? t->buffer : NULL;
    if (b) t->buffer = NULL;
    int gone = t->gone;
    release(t);
    if (b) queue(b);
    if (gone) {
      *at = t->next;
      free(t->buffer);
      free(t);
    } else {
      at = &t->next;
    }
  }
  pthread_mutex_unlock(&listing);
}

static void write_names(void) {
  pthread_mutex_lock(&listing);
  if (file.number >= 0 && names_used > names_written && !put_lines(names + names_written, names_used - names_written))
    names_written = names_used;
  pthread_mutex_unlock(&listing);
}

static void tell_losses(void) {
  uint64_t now_lost = __atomic_load_n(&lost, __ATOMIC_RELAXED);
  char line[96];
  if (file.number < 0 || now_lost == told_lost) return;
  int n = snprintf(line, sizeof line, "L\t%llu\tevents\t%llu\n", (unsigned long long)teller_now(CLOCK_MONOTONIC),
                   (unsigned long long)(now_lost - told_lost));
  if (!put_lines(line, (size_t)n)) told_lost = now_lost;
}

static void flush(void) {
  static buffer_t *sorted[4 * MOST_PENDING];
  size_t count = 0;
  pthread_mutex_lock(&flushing);
  gather();
  teller_write(&file, "", 0); /* whether it still is ours */
  for (buffer_t *b = __atomic_exchange_n(&full, NULL, __ATOMIC_ACQUIRE), *next; b; b = next) {
    next = b->next;
    if (count < sizeof sorted / sizeof *sorted) sorted[count++] = b;
    else __atomic_fetch_add(&lost, b->lines, __ATOMIC_RELAXED), free(b), __atomic_fetch_sub(&pending, 1, __ATOMIC_RELAXED);
  }
  qsort(sorted, count, sizeof *sorted, in_order);
  for (size_t i = 0; i < count; i++) {
    buffer_t *b = sorted[i];
    if (file.number < 0 || segment_is_over(b->used)) open_file();
    write_names();
    if (file.number < 0 || put_lines(b->text, b->used)) __atomic_fetch_add(&lost, b->lines, __ATOMIC_RELAXED);
    free(b);
    __atomic_fetch_sub(&pending, 1, __ATOMIC_RELAXED);
  }
  if (file.number >= 0 && (count || teller_now(CLOCK_MONOTONIC) - anchored_at > 1000000000ull)) write_names(), tell_losses(), anchor();
  pthread_mutex_unlock(&flushing);
}

static void *flush_for_ever(void *nothing) {
  (void)nothing;
  for (;;) {
    usleep(200000);
    flush();
  }
  return NULL;
}

static void thread_ends(void *it) {
  thread_t *t = it;
  mine = NULL;
  ended = 1;
  if (t->life == life) __atomic_store_n(&t->gone, 1, __ATOMIC_RELEASE);
}

/* In the child only the calling thread lives, and locks may be held by threads that are not there. */
void teller_nvtx_after_fork(void) {
  pthread_mutex_init(&listing, NULL);
  pthread_mutex_init(&flushing, NULL);
  teller_close(&file);
  threads = NULL;
  full = NULL;
  mine = NULL;
  pending = segment = 0;
  lost = told_lost = 0;
  torn = running = 0;
  names_written = 0;
  life++;
}

static void set_up(void) {
  pthread_key_create(&key, thread_ends);
  atexit(flush);
}

static thread_t *enter(void) {
  if (ended) return NULL;
  pthread_once(&once, set_up);
  thread_t *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->tid = syscall(SYS_gettid);
  t->life = life;
  pthread_setspecific(key, t);
  pthread_mutex_lock(&listing);
  t->next = threads;
  threads = t;
  int start = !running;
  running = 1;
  pthread_mutex_unlock(&listing);
  if (start && teller_thread("teller-nvtx", flush_for_ever)) running = 0;
  return mine = t;
}

thread_t *teller_me(void) { return mine && mine->life == life ? mine : enter(); }

static buffer_t *fresh(void) {
  if (__atomic_load_n(&pending, __ATOMIC_RELAXED) >= MOST_PENDING) return NULL;
  buffer_t *b = malloc(sizeof *b);
  if (b) b->used = b->lines = 0, b->number = __atomic_fetch_add(&next_number, 1, __ATOMIC_RELAXED);
  return b;
}

void teller_keep_line(thread_t *t, const char *line, size_t size) {
  buffer_t *over = NULL;
  hold(t);
  if (t->buffer && t->buffer->used + size > ROOM) over = t->buffer, t->buffer = NULL;
  if (over) queue(over);
  if (!t->buffer) t->buffer = fresh();
  if (t->buffer) {
    memcpy(t->buffer->text + t->buffer->used, line, size);
    t->buffer->used += (uint32_t)size;
    t->buffer->lines++;
  } else {
    __atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
  }
  release(t);
}

void teller_keep_name(const char *line, size_t size) {
  pthread_mutex_lock(&listing);
  if (!names) names = malloc(MOST_NAMES);
  if (names && names_used + size <= MOST_NAMES) memcpy(names + names_used, line, size), names_used += size;
  pthread_mutex_unlock(&listing);
}

char *teller_registered(const char *text, size_t most) {
  pthread_mutex_lock(&listing);
  int64_t number = teller_intern(&registered, text, strnlen(text, most));
  char *copy = number < 0 ? NULL : registered.text[number];
  pthread_mutex_unlock(&listing);
  return copy;
}
