/* What the two halves of the injection library share. Nothing here comes from NVIDIA's headers. */
#ifndef TELLER_INJECT_H
#define TELLER_INJECT_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define SEGMENTS 8 /* of a ring: the oldest is unlinked when a ninth begins */

typedef struct {
  char folder[3840];
  uint64_t bytes;   /* most bytes that this process keeps on disk, 0 for no bound */
  uint64_t seconds; /* oldest age that it keeps, 0 for no bound */
} settings_t;

/* Texts by their content: the number of one that was seen before, or a new one. */
typedef struct {
  char **text;
  uint32_t *slot; /* number + 1, 0 for none; `room` slots, a power of two */
  uint32_t count, room;
} texts_t;

const settings_t *teller_settings(void); /* NULL without TELLER_CAPTURE_DIR: then nothing is done */
uint64_t teller_now(clockid_t clock);    /* ns */
int teller_thread(const char *name, void *(*run)(void *));

/* A file of ours. A program that becomes a daemon closes every descriptor that it finds and opens its own: one that is no
 * longer of our file is neither written to nor closed. */
typedef struct {
  int number; /* -1: none */
  dev_t device;
  ino_t inode;
} file_t;
int teller_open(file_t *file, const char *path, int flags); /* -1 where it cannot be opened */
void teller_close(file_t *file);
ssize_t teller_write(file_t *file, const void *from, size_t size); /* as write; -1 and no file where it was taken from us */

int64_t teller_intern(texts_t *texts, const char *text, size_t length); /* -1 where memory is out */
void teller_nvtx_after_fork(void);
void teller_cupti_after_fork(void);

/* Lines of nvtx-PID.tsv (teller_lines.c). */
enum { MOST_LINE = 768, DEPTHS = 64 };
typedef struct thread {
  struct thread *next;
  struct buffer *buffer;
  long tid;
  int busy, gone;
  uint64_t life;
  int depth[DEPTHS]; /* open ranges, by the place of their domain */
} thread_t;
thread_t *teller_me(void); /* NULL on a thread that is ending, or where memory is out */
void teller_keep_line(thread_t *t, const char *line, size_t size);
void teller_keep_name(const char *line, size_t size);
char *teller_registered(const char *text, size_t most); /* a copy that stays, the same one for the same text */

#endif
