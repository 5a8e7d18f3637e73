/* What the parts of the CUPTI half share: the layout of records, CUPTI's functions, the file of a window.
 * Numbers of kinds, results and functions' signatures are those of CUPTI's documentation. */
#ifndef TELLER_CUPTI_H
#define TELLER_CUPTI_H
#include "teller_inject.h"

enum { KINDS = 64, FIELDS = 32, STAGE = 256 << 10, CALLS = 2048 };
enum { KEEP = 1, DROP = 2, LAUNCH = 4 }; /* what is known of a call */
enum { DRIVER = 4, RUNTIME = 5, KERNEL = 10, GRAPH = 51, CUSTOM2 = 5, OK = 0, SYSTEM_IDS = 1 };

typedef struct {
  uint16_t offset, length;
  int text; /* a char*, kept as the number of its text */
} field_t;

typedef struct {
  uint32_t fields, row, used;
  field_t field[FIELDS];
  uint64_t count;
  char *stage;
  int some; /* only calls of KEEP are kept */
} kind_t;

typedef struct {
  int (*version)(uint32_t *);
  int (*timestamp)(uint64_t *);
  int (*callbacks)(void *requested, void *completed);
  int (*enable)(uint32_t kind);
  int (*disable)(uint32_t kind);
  int (*flush)(uint32_t flag);
  int (*next)(uint8_t *buffer, size_t valid, uint8_t **record);
  int (*dropped)(void *context, uint32_t stream, size_t *dropped);
  int (*push)(uint32_t kind, uint64_t id);
  int (*pop)(uint32_t kind, uint64_t *id);
  int (*subscribe)(void **subscriber, void *callback, void *data);
  int (*unsubscribe)(void *subscriber);
  int (*get_thread_ids)(int *type);
  int (*set_thread_ids)(int type);
} cupti_t;

typedef struct {
  unsigned long long ms, most, steps; /* the first that is met ends the window; no steps: any number of them */
  int whole, shared;
  uint64_t at; /* when it opens, Unix ns; 0 at once */
} asked_t;

/* Unix ns: when the window opened and closed, and when CUPTI was made to do what a program may feel. in_step: threads that were within
 * a marked step as it closed: the last step is cut. */
typedef struct {
  uint64_t open[2], close[2], disabled[2], flushed[2];
  int in_step;
} times_t;

typedef struct {
  kind_t kinds[KINDS];
  uint8_t call[2][CALLS]; /* of DRIVER and of RUNTIME, by its number */
  uint32_t version;
  char *json;
} layout_t;
extern layout_t layout;
extern cupti_t cupti;

char *read_text(const char *path); /* of a small file, to be freed; NULL where it cannot be read */
void read_layout(void);
const char *find_cupti(void); /* NULL, or why CUPTI cannot be used */

/* Buffers: CUPTI's callbacks, and what a writing thread takes from them (teller_buffers.c). */
typedef struct { uint64_t starved, foreign, late; } strays_t;
void requested(uint8_t **at, size_t *size, size_t *most);
void completed(void *context, uint32_t stream, uint8_t *at, size_t size, size_t valid);
int start_writing(void);
void end_writing(void); /* returns once all that CUPTI gave back is in the file */
strays_t strays(void);  /* and begins to count anew */
void forget_buffers(void);

/* The file of a window (teller_records.c). */
int open_file(const asked_t *asked);
int file_is_open(void);
const char *file_is_full(void); /* NULL, or what it is full of */
void keep_record(const uint8_t *record);
void write_staged(void);
void write_anchor(void);
void close_file(const char *reason, size_t dropped, const times_t *when, const char *not_enabled);
int was_blind(void); /* the window saw launches, but not one kernel */
void abandon_file(void);

#endif
