/* CUPTI's activity records in windows, as blocks of cupti-PID-N.bin: the library that the CUDA driver itself loads, by
 * CUDA_INJECTION64_PATH, whatever the language of the program.
 *
 * Between windows CUPTI is not touched, so that torch's profiler or another client can have it. A window is asked for by
 * the file CUPTI in the capture's folder ("milliseconds max_records [whole] [shared] [steps=N] [at=NS]"), which a thread of ours looks at
 * ten times a second. CUPTI calls the buffer callbacks while it holds its own lock: they do no more than link a buffer into a
 * list. A writing thread copies the wanted fields of each record out, and only then may CUPTI have the buffer again; one
 * that CUPTI holds is never freed. Which fields: TELLER_INJECT_LAYOUT names a text that collect/cupti/layouts.py wrote.
 */
#include "teller_cupti.h"

#include <sys/stat.h>

enum { LOOK_MS = 100, MOST_WINDOWS = 100 };
enum { UNSEEN = -1, DECIDING, OPEN, REFUSED, CLOSED }; /* what became of the window that was asked for last */
static int started, open_now, ending, giving_way, blinded, state = UNSEEN;
static uint32_t opened;
static uint32_t ended;
static uint64_t seen; /* when the file was written that asked for it, Unix ns */
static uint64_t most_steps, steps_begun;
static int inside; /* threads within a marked part of a step */
static __thread uint32_t pushed;
static __thread uint64_t last_step = UINT64_MAX;
static __thread uint32_t last_in; /* the window in which it began, 0 for none */

static void become(int now) { __atomic_store_n(&state, now, __ATOMIC_RELEASE); }
static uint64_t written(const struct stat *s) { return (uint64_t)s->st_mtim.tv_sec * 1000000000ull + (uint64_t)s->st_mtim.tv_nsec; }

/* Enable what the layout can read, by the calls that torch's profiler makes too. GRAPH, one record for each replay of a graph
 * in the place of one for each of its nodes, only where it was asked for: on CUDA 13.0 a program died that replayed a graph
 * which it had made before the window. */
static void enable(const asked_t *asked, char *failed, size_t room) {
  size_t used = 0;
  failed[0] = 0;
  for (uint32_t i = 1; i < KINDS; i++) {
    if (!layout.kinds[i].fields || (i == GRAPH && !asked->whole)) continue;
    int result = cupti.enable(i);
    if (result && used + 24 < room) used += (size_t)snprintf(failed + used, room - used, "%s[%u,%d]", used ? "," : "", i, result);
  }
}

static void disable(const asked_t *asked) {
  for (uint32_t i = 1; i < KINDS; i++)
    if (layout.kinds[i].fields && (i != GRAPH || asked->whole)) cupti.disable(i);
}

static int still_asked(const char *path, const struct stat *was) {
  struct stat is;
  return !stat(path, &is) && is.st_ino == was->st_ino && is.st_mtim.tv_nsec == was->st_mtim.tv_nsec &&
         is.st_mtim.tv_sec == was->st_mtim.tv_sec;
}

/* Until the time at which every process opens the window. Whether it is still asked for then. */
static int wait_for_opening(const asked_t *asked, const char *path, const struct stat *was) {
  for (uint64_t now; (now = teller_now(CLOCK_REALTIME)) < asked->at; usleep(asked->at - now < 5000000 ? 500 : 5000))
    if (!still_asked(path, was) || __atomic_load_n(&ending, __ATOMIC_ACQUIRE)) return 0;
  return 1;
}

static const char *wait_for_end(const asked_t *asked, const char *path, const struct stat *was) {
  uint64_t end = teller_now(CLOCK_MONOTONIC) + asked->ms * 1000000ull, flushed = teller_now(CLOCK_MONOTONIC);
  const char *full;
  for (uint64_t now; (now = teller_now(CLOCK_MONOTONIC)) < end;) {
    if ((full = file_is_full())) return full;
    if (!still_asked(path, was)) return "asked";
    if (__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) return "exit";
    if (__atomic_load_n(&giving_way, __ATOMIC_ACQUIRE)) return "gave_way";
    if (asked->steps && __atomic_load_n(&steps_begun, __ATOMIC_ACQUIRE) > asked->steps) return "steps";
    if (now - flushed > 250000000ull) cupti.flush(0), flushed = now;
    usleep(end - now < 20000000ull ? (useconds_t)((end - now) / 1000 + 1) : 20000);
  }
  return "time";
}

/* After some hundreds of windows in one process CUPTI 13.0 gave no kernels any more, to nobody: it is seen to that none has so many. */
static uint32_t most_windows(void) {
  const char *most = getenv("TELLER_INJECT_WINDOWS");
  return most && atoi(most) > 0 ? (uint32_t)atoi(most) : MOST_WINDOWS;
}

static void refuse(const asked_t *asked, const char *reason) {
  const uint64_t now = teller_now(CLOCK_REALTIME);
  const times_t when = {{now, now}, {now, now}, {now, now}, {now, now}, 0};
  if (!open_file(asked)) close_file(reason, 0, &when, "");
  become(REFUSED);
  __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
}

static int callback_of_nobody(void) { return 0; }

static void window(const asked_t *asked, const char *path, const struct stat *was) {
  const char *problem = find_cupti();
  void *subscriber = NULL;
  char failed[1024];
  times_t when;
  size_t dropped = 0, before = 0;
  if (!problem && blinded) problem = "blinded";
  if (!problem && opened >= most_windows()) problem = "too_many_windows";
  if (problem) { refuse(asked, problem); return; }
  int taken = cupti.subscribe(&subscriber, callback_of_nobody, NULL);
  if (taken && !asked->shared) { refuse(asked, "other_client"); return; }
  if (open_file(asked)) {
    if (!taken) cupti.unsubscribe(subscriber);
    become(REFUSED);
    return;
  }
  opened++;
  const uint64_t now = teller_now(CLOCK_REALTIME);
  when = (times_t){{now, now}, {now, now}, {now, now}, {now, now}, 0};
  write_anchor();
  if (start_writing()) {
    if (!taken) cupti.unsubscribe(subscriber);
    close_file("no_thread", 0, &when, "");
    become(REFUSED);
    return;
  }
  int thread_ids = 0, other_ids = cupti.get_thread_ids && cupti.set_thread_ids && !cupti.get_thread_ids(&thread_ids);
  if (other_ids) cupti.set_thread_ids(SYSTEM_IDS); /* until the window ends: torch's profiler counts on the others */
  cupti.dropped(NULL, 0, &before); /* what was lost before this window is not its own */
  cupti.callbacks(requested, completed);
  enable(asked, failed, sizeof failed);
  most_steps = asked->steps;
  __atomic_store_n(&steps_begun, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&giving_way, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&open_now, (int)opened, __ATOMIC_RELEASE);
  become(OPEN);
  when.open[1] = teller_now(CLOCK_REALTIME);
  const char *reason = wait_for_end(asked, path, was);
  __atomic_store_n(&open_now, 0, __ATOMIC_RELEASE);
  when.close[0] = when.disabled[0] = teller_now(CLOCK_REALTIME);
  disable(asked);
  when.disabled[1] = teller_now(CLOCK_REALTIME);
  when.in_step = __atomic_load_n(&inside, __ATOMIC_RELAXED);
  usleep((useconds_t)(asked->ms < 50 ? asked->ms : 50) * 1000); /* what runs now ends first: forced out, it has no end */
  when.flushed[0] = teller_now(CLOCK_REALTIME);
  cupti.flush(0);
  cupti.flush(1);
  when.close[1] = when.flushed[1] = teller_now(CLOCK_REALTIME);
  cupti.dropped(NULL, 0, &dropped);
  if (other_ids) cupti.set_thread_ids(thread_ids);
  if (!taken) cupti.unsubscribe(subscriber);
  end_writing();
  write_staged();
  write_anchor();
  blinded = was_blind();
  close_file(reason, dropped, &when, failed);
  become(CLOSED);
  __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
}

/* Give an open window the time to end with the program: a second at most. */
static void at_exit(void) {
  __atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < 100 && file_is_open(); i++) usleep(10000);
}

static void *look_for_windows(void *nothing) {
  char path[4096];
  struct stat done = {0};
  (void)nothing;
  snprintf(path, sizeof path, "%s/CUPTI", teller_settings()->folder);
  const char *often = getenv("TELLER_INJECT_LOOK_MS");
  useconds_t look = (useconds_t)(often && atoi(often) > 0 ? atoi(often) : LOOK_MS) * 1000;
  for (;; usleep(look)) {
    struct stat is;
    if (stat(path, &is)) continue;
    if (is.st_ino == done.st_ino && is.st_mtim.tv_nsec == done.st_mtim.tv_nsec && is.st_mtim.tv_sec == done.st_mtim.tv_sec) continue;
    done = is;
    become(DECIDING);
    __atomic_store_n(&seen, written(&is), __ATOMIC_RELEASE);
    char *text = read_text(path), kept[4][32] = {"", "", "", ""};
    asked_t asked = {0};
    int words = text ? sscanf(text, "%llu %llu %31s %31s %31s %31s", &asked.ms, &asked.most, kept[0], kept[1], kept[2], kept[3]) : 0;
    free(text);
    for (int i = 0; i < 4; i++) {
      asked.whole |= !strcmp(kept[i], "whole"), asked.shared |= !strcmp(kept[i], "shared");
      if (!strncmp(kept[i], "steps=", 6)) asked.steps = strtoull(kept[i] + 6, NULL, 10);
      if (!strncmp(kept[i], "at=", 3)) asked.at = strtoull(kept[i] + 3, NULL, 10);
    }
    long long age = (long long)time(NULL) - is.st_mtim.tv_sec;
    if (words >= 2 && asked.ms && asked.ms <= 3600000 && age * 1000 <= (long long)asked.ms + 1000 && wait_for_opening(&asked, path, &is))
      window(&asked, path, &is);
    else become(REFUSED);
  }
  return NULL;
}

/* The child of a fork has no use of its parent's CUDA; where the parent had none, the driver calls us again in the child. */
void teller_cupti_after_fork(void) {
  forget_buffers();
  abandon_file();
  memset(&cupti, 0, sizeof cupti);
  started = open_now = ending = giving_way = blinded = inside = 0;
  state = UNSEEN;
  seen = 0;
  opened = 0;
}

EXPORTED int InitializeInjection(void) {
  if (!teller_settings() || __atomic_exchange_n(&started, 1, __ATOMIC_SEQ_CST)) return 1;
  static int registered;
  if (!registered++) read_layout(), atexit(at_exit);
  if (teller_thread("teller-cupti", look_for_windows)) started = 0;
  return 1;
}

/* What runs on this thread until teller_step_end belongs to step `id`: its records carry the number. Nothing outside windows, nor
 * beyond the steps that were asked for. A step may come in several parts; one that began before the window is not marked. */
EXPORTED void teller_step(uint64_t id) {
  uint32_t now = (uint32_t)__atomic_load_n(&open_now, __ATOMIC_ACQUIRE);
  if (last_step != id) {
    last_step = id, last_in = now;
    if (now) __atomic_fetch_add(&steps_begun, 1, __ATOMIC_RELEASE);
  }
  if (!now || last_in != now) return;
  if (most_steps && __atomic_load_n(&steps_begun, __ATOMIC_ACQUIRE) > most_steps) return;
  if (!cupti.push(CUSTOM2, id)) pushed++, __atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED);
}

EXPORTED void teller_step_end(void) {
  uint64_t id;
  if (pushed) pushed--, __atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED), cupti.pop(CUSTOM2, &id);
}

/* What became of the window that was asked for by the file written at `asked` Unix ns: -1 not seen yet, 0 seen, 1 open,
 * 2 refused (the footer of its file says why), 3 closed. */
EXPORTED int teller_window(uint64_t asked) {
  return __atomic_load_n(&seen, __ATOMIC_ACQUIRE) == asked ? __atomic_load_n(&state, __ATOMIC_ACQUIRE) : UNSEEN;
}

/* Whether the CUDA driver has called us: only then there are windows in this process. */
EXPORTED int teller_has_cuda(void) { return __atomic_load_n(&started, __ATOMIC_ACQUIRE); }

/* Let the window that is open end now, as another client of CUPTI is about to come. Does not wait. */
EXPORTED void teller_give_way(void) { __atomic_store_n(&giving_way, 1, __ATOMIC_RELEASE); }

/* Whether a window is open, and how many have ended or were refused: what a program may ask, and tests do. */
EXPORTED int teller_recording(void) { return __atomic_load_n(&open_now, __ATOMIC_ACQUIRE) != 0; }
EXPORTED uint32_t teller_windows_ended(void) { return __atomic_load_n(&ended, __ATOMIC_ACQUIRE); }
