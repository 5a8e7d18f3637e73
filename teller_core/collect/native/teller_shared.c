/* Settings, time, threads and texts: what both halves of the injection library use. */
#include "teller_inject.h"

static settings_t settings;
static int has_settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

uint64_t teller_now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

int teller_thread(const char *name, void *(*run)(void *)) {
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t all, before;
  sigfillset(&all); /* signals are the program's: none is to arrive on a thread of ours */
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 << 10);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&thread, &attributes, run, NULL);
  if (!failed) pthread_setname_np(thread, name);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return failed;
}

enum { HIGH = 200 }; /* a program counts on the low numbers of descriptors */

static int is_ours(const file_t *file) {
  struct stat now;
  return file->number >= 0 && !fstat(file->number, &now) && now.st_dev == file->device && now.st_ino == file->inode;
}

int teller_open(file_t *file, const char *path, int flags) {
  struct stat about;
  int number = open(path, flags | O_CLOEXEC, 0644);
  int high = number < 0 ? -1 : fcntl(number, F_DUPFD_CLOEXEC, HIGH);
  if (high >= 0) close(number), number = high;
  if (number >= 0 && fstat(number, &about)) close(number), number = -1;
  if (number >= 0) file->device = about.st_dev, file->inode = about.st_ino;
  __atomic_store_n(&file->number, number, __ATOMIC_RELEASE);
  return number < 0 ? -1 : 0;
}

void teller_close(file_t *file) {
  if (is_ours(file)) close(file->number);
  __atomic_store_n(&file->number, -1, __ATOMIC_RELEASE);
}

ssize_t teller_write(file_t *file, const void *from, size_t size) {
  if (is_ours(file)) return write(file->number, from, size);
  teller_close(file);
  errno = EBADF;
  return -1;
}

static uint64_t hash(const char *text, size_t length) {
  uint64_t h = 0x9E3779B97F4A7C15ull ^ length, word;
  for (; length >= 8; text += 8, length -= 8) {
    memcpy(&word, text, 8);
    h = (h ^ word) * 0xD6E8FEB86659FD93ull;
    h ^= h >> 32;
  }
  word = 0;
  memcpy(&word, text, length);
  h = (h ^ word) * 0xD6E8FEB86659FD93ull;
  return h ^ h >> 29;
}

static int widen(texts_t *t) {
  uint32_t room = t->room ? 2 * t->room : 256;
  char **text = realloc(t->text, room * sizeof *text);
  if (text) t->text = text;
  uint32_t *slot = calloc(room, sizeof *slot);
  if (!text || !slot) return free(slot), -1;
  for (uint32_t i = 0; i < t->count; i++) {
    uint64_t at = hash(text[i], strlen(text[i]));
    while (slot[at & (room - 1)]) at++;
    slot[at & (room - 1)] = i + 1;
  }
  free(t->slot);
  t->slot = slot;
  t->room = room;
  return 0;
}

int64_t teller_intern(texts_t *t, const char *text, size_t length) {
  if (2 * t->count >= t->room && widen(t)) return -1;
  uint64_t at = hash(text, length);
  uint32_t found;
  while ((found = t->slot[at & (t->room - 1)])) {
    const char *known = t->text[found - 1];
    if (!strncmp(known, text, length) && !known[length]) return found - 1;
    at++;
  }
  char *copy = malloc(length + 1);
  if (!copy) return -1;
  memcpy(copy, text, length);
  copy[length] = 0;
  t->text[t->count] = copy;
  t->slot[at & (t->room - 1)] = ++t->count;
  return t->count - 1;
}

static uint64_t number_of(const char *variable) {
  const char *text = getenv(variable);
  return text ? strtoull(text, NULL, 10) : 0;
}

static void after_fork(void) {
  teller_nvtx_after_fork();
  teller_cupti_after_fork();
}

static void set_up(void) {
  const char *folder = getenv("TELLER_CAPTURE_DIR");
  has_settings = folder && *folder && strlen(folder) < sizeof settings.folder;
  if (!has_settings) return;
  strcpy(settings.folder, folder);
  settings.bytes = number_of("TELLER_CAPTURE_BYTES");
  settings.seconds = number_of("TELLER_CAPTURE_SECONDS");
  pthread_atfork(NULL, NULL, after_fork);
}

const settings_t *teller_settings(void) {
  pthread_once(&once, set_up);
  return has_settings ? &settings : NULL;
}

EXPORTED const char teller_inject[] = "teller_inject 1";
