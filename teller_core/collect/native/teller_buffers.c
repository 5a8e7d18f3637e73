/* Buffers of records. CUPTI calls us while it holds its own lock: a callback does no more than link a buffer into a list.
 * A writing thread copies the wanted fields of each record out, and only then may CUPTI have the buffer again; one that
 * CUPTI holds is never freed. */
#include "teller_cupti.h"

enum { BUFFER = 2 << 20, MOST_BUFFERS = 64 };
enum { WITH_US, WITH_CUPTI, FULL };
typedef struct {
  uint8_t *at, *raw; /* aligned, and as it was allocated */
  size_t valid;
  int state;
  uint32_t next; /* of the full ones */
} buffer_t;

static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER; /* held for a few instructions */
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static buffer_t buffers[MOST_BUFFERS];
static uint32_t made, first_full = MOST_BUFFERS, last_full = MOST_BUFFERS;
static strays_t stray;
static int writing, closing; /* whether a window's writer runs; whether it is to end once nothing is left */

/* Called by CUPTI under its lock. Without a buffer it drops records and counts them. */
void requested(uint8_t **at, size_t *size, size_t *most) {
  buffer_t *found = NULL;
  *most = 0;
  pthread_mutex_lock(&listing);
  for (uint32_t i = 0; i < made && !found; i++)
    if (buffers[i].state == WITH_US) found = &buffers[i];
  if (!found && made < MOST_BUFFERS && (buffers[made].raw = malloc(BUFFER + 64))) {
    found = &buffers[made++];
    found->at = (uint8_t *)(((uintptr_t)found->raw + 63) & ~(uintptr_t)63);
  }
  if (found) found->state = WITH_CUPTI;
  else stray.starved++;
  pthread_mutex_unlock(&listing);
  *at = found ? found->at : NULL;
  *size = found ? BUFFER : 0;
}

/* Called by CUPTI under its lock. A buffer of another client's is left alone. */
void completed(void *context, uint32_t stream, uint8_t *at, size_t size, size_t valid) {
  uint32_t i = 0;
  (void)context, (void)stream, (void)size;
  pthread_mutex_lock(&listing);
  while (i < made && buffers[i].at != at) i++;
  if (i == made) {
    stray.foreign++;
  } else if (!valid || !writing) {
    stray.late += valid > 0;
    buffers[i].state = WITH_US;
  } else {
    buffers[i].state = FULL;
    buffers[i].valid = valid;
    buffers[i].next = MOST_BUFFERS;
    if (first_full == MOST_BUFFERS) first_full = i;
    else buffers[last_full].next = i;
    last_full = i;
    pthread_cond_signal(&arrived);
  }
  pthread_mutex_unlock(&listing);
}

static void *write_for_a_window(void *nothing) {
  (void)nothing;
  for (;;) {
    pthread_mutex_lock(&listing);
    while (first_full == MOST_BUFFERS && !closing) pthread_cond_wait(&arrived, &listing);
    uint32_t i = first_full;
    if (i == MOST_BUFFERS) break;
    first_full = buffers[i].next;
    pthread_mutex_unlock(&listing);
    uint8_t *record = NULL;
    while (cupti.next(buffers[i].at, buffers[i].valid, &record) == OK && record) keep_record(record);
    write_staged();
    pthread_mutex_lock(&listing);
    buffers[i].state = WITH_US;
    pthread_mutex_unlock(&listing);
  }
  writing = 0;
  pthread_cond_broadcast(&arrived);
  pthread_mutex_unlock(&listing);
  return NULL;
}

int start_writing(void) {
  closing = 0;
  writing = 1;
  if (teller_thread("teller-cupti-w", write_for_a_window)) writing = 0;
  return !writing;
}

void end_writing(void) {
  pthread_mutex_lock(&listing);
  closing = 1;
  pthread_cond_broadcast(&arrived);
  while (writing) pthread_cond_wait(&arrived, &listing);
  pthread_mutex_unlock(&listing);
}

strays_t strays(void) {
  pthread_mutex_lock(&listing);
  strays_t counted = stray;
  stray = (strays_t){0};
  pthread_mutex_unlock(&listing);
  return counted;
}

void forget_buffers(void) {
  pthread_mutex_init(&listing, NULL);
  pthread_cond_init(&arrived, NULL);
  writing = 0;
  made = 0;
  first_full = last_full = MOST_BUFFERS;
}
