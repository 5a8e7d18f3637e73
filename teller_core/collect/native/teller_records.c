/* The file of a window, cupti-PID-N.bin.
 *
 * A file: 8 bytes of magic, then blocks (mark, type, count, bytes: four uint32, then the bytes). Types: 1 JSON of the
 * header, 2 anchors (CUPTI, Unix, monotonic ns and how long reading took), 3 texts (uint32 length, bytes) numbered from 0
 * in the order of the file, 4 JSON of the footer, 256 + kind: rows. What is whole can be read, however the end was cut.
 */
#include "teller_cupti.h"

#include <dlfcn.h>
#include <stdarg.h>

enum { HEADER = 1, ANCHORS = 2, TEXTS = 3, FOOTER = 4, ROWS = 256, MOST_TEXT = 16 << 10 };
static const uint32_t MARK = 0x4B4C4254; /* "TBLK" */
static const char MAGIC[8] = "TLRCUPT1";

static texts_t texts;
static char *text_stage;
static uint32_t text_count, text_used;
static file_t file = {.number = -1};
static int broken, full_up;
static uint64_t bytes_written, records, most_records, most_bytes, cut, unknown, launches, unwanted;
static uint32_t windows;

static void put(const void *from, size_t size) {
  const char *text = from;
  while (size && !broken) {
    ssize_t done = teller_write(&file, text, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) { broken = 1; return; }
    bytes_written += (uint64_t)done;
    text += done;
    size -= (size_t)done;
  }
}

static void block(uint32_t type, uint32_t count, const void *from, uint32_t size) {
  const uint32_t head[4] = {MARK, type, count, size};
  put(head, sizeof head);
  put(from, size);
}

void write_anchor(void) {
  uint64_t best[4] = {0, 0, 0, UINT64_MAX};
  for (int i = 0; i < 5; i++) { /* the quickest of a few readings: the others were interrupted */
    uint64_t t, before = teller_now(CLOCK_REALTIME), mono = teller_now(CLOCK_MONOTONIC);
    if (cupti.timestamp(&t)) return;
    uint64_t after = teller_now(CLOCK_REALTIME), took = after - before;
    if (took < best[3]) best[0] = t, best[1] = before + took / 2, best[2] = mono + took / 2, best[3] = took;
  }
  block(ANCHORS, 1, best, sizeof best);
}

void write_staged(void) {
  if (text_used) block(TEXTS, text_count, text_stage, text_used); /* before the rows that name them */
  text_used = text_count = 0;
  for (uint32_t i = 0; i < KINDS; i++) {
    kind_t *k = &layout.kinds[i];
    if (k->used) block(ROWS + i, k->used / k->row, k->stage, k->used);
    k->used = 0;
  }
}

/* A C++ name as its library spells it, to be freed; NULL where that is no C++ name or no such library is there. */
static char *demangled(const char *text) {
  static char *(*demangle)(const char *, char *, size_t *, int *);
  if (strncmp(text, "_Z", 2)) return NULL;
  if (!demangle) {
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY);
    void *function = library ? dlsym(library, "__cxa_demangle") : NULL;
    memcpy(&demangle, &function, sizeof function);
  }
  return demangle ? demangle(text, NULL, NULL, NULL) : NULL;
}

static void stage_text(const char *text) {
  uint32_t size = (uint32_t)strnlen(text, MOST_TEXT);
  if (text_used + 4 + size > STAGE) write_staged();
  memcpy(text_stage + text_used, &size, 4);
  memcpy(text_stage + text_used + 4, text, size);
  text_used += 4 + size;
  text_count++;
}

static uint32_t number_of(const char *text) {
  if (!text) return UINT32_MAX;
  uint32_t before = texts.count;
  int64_t number = teller_intern(&texts, text, strnlen(text, MOST_TEXT));
  if (number < 0) return UINT32_MAX;
  if (texts.count > before) {
    char *known = demangled(texts.text[number]);
    stage_text(known ? known : texts.text[number]);
    free(known);
  }
  return (uint32_t)number;
}

/* Whether a call is one of those that were asked for: the others are many, and say nothing. */
static int is_wanted(uint32_t kind, const uint8_t *record) {
  uint32_t call;
  if (kind != DRIVER && kind != RUNTIME) return 1;
  memcpy(&call, record + 4, sizeof call); /* every record of a call has its number second */
  uint8_t known = call < CALLS ? layout.call[kind - DRIVER][call] : 0;
  launches += (known & LAUNCH) != 0;
  return !(known & DROP) && (!layout.kinds[kind].some || (known & KEEP));
}

void keep_record(const uint8_t *record) {
  uint32_t number;
  memcpy(&number, record, 4);
  if (number >= KINDS || !layout.kinds[number].fields) { unknown++; return; }
  if (!is_wanted(number, record)) { unwanted++; return; }
  if (records >= most_records || bytes_written >= most_bytes || broken) { full_up = 1, cut++; return; }
  kind_t *k = &layout.kinds[number];
  char row[STAGE / 8], *to = row;
  for (uint32_t i = 0; i < k->fields; i++) {
    const field_t *f = &k->field[i];
    if (f->text) {
      const char *text;
      memcpy(&text, record + f->offset, sizeof text);
      uint32_t text_number = number_of(text);
      memcpy(to, &text_number, 4);
      to += 4;
    } else {
      memcpy(to, record + f->offset, f->length);
      to += f->length;
    }
  }
  if (k->used + k->row > STAGE) write_staged();
  memcpy(k->stage + k->used, row, k->row);
  k->used += k->row;
  k->count++;
  records++;
}

static char json[1 << 16];
static size_t json_used;
static void say(const char *format, ...) {
  va_list values;
  va_start(values, format);
  int n = vsnprintf(json + json_used, sizeof json - json_used, format, values);
  va_end(values);
  if (n > 0 && json_used + (size_t)n < sizeof json) json_used += (size_t)n;
}

static int allocate_stages(void) {
  if (!text_stage && !(text_stage = malloc(STAGE))) return -1;
  for (uint32_t i = 0; i < KINDS; i++)
    if (layout.kinds[i].fields && !layout.kinds[i].stage && !(layout.kinds[i].stage = malloc(STAGE))) return -1;
  return 0;
}

static void path_of(char *path, size_t room, uint32_t number) {
  snprintf(path, room, "%s/cupti-%d-%u.bin", teller_settings()->folder, (int)getpid(), number);
}

int open_file(const asked_t *asked) {
  char path[4096];
  if (++windows > SEGMENTS && teller_settings()->bytes) {
    path_of(path, sizeof path, windows - SEGMENTS);
    unlink(path);
  }
  path_of(path, sizeof path, windows);
  if (teller_open(&file, path, O_WRONLY | O_CREAT | O_TRUNC)) return -1;
  if (allocate_stages()) return teller_close(&file), -1;
  broken = full_up = 0;
  bytes_written = records = cut = unknown = launches = unwanted = 0;
  strays();
  most_records = asked->most;
  most_bytes = teller_settings()->bytes ? teller_settings()->bytes / SEGMENTS : UINT64_MAX;
  for (uint32_t i = 0; i < texts.count; i++) free(texts.text[i]);
  if (texts.slot) memset(texts.slot, 0, texts.room * sizeof *texts.slot);
  texts.count = 0;
  text_used = text_count = 0;
  for (uint32_t i = 0; i < KINDS; i++) layout.kinds[i].count = layout.kinds[i].used = 0;
  put(MAGIC, sizeof MAGIC);
  json_used = 0;
  say("{\"schema\":1,\"pid\":%d,\"window\":%u,\"ms\":%llu,\"max_records\":%llu,\"whole\":%s,\"cupti\":%u,\"layout\":",
      (int)getpid(), windows, asked->ms, asked->most, asked->whole ? "true" : "false", layout.version);
  const char *about = layout.json ? layout.json : "null";
  size_t size = json_used + strlen(about) + 1;
  char *whole = malloc(size + 1);
  if (!whole) return teller_close(&file), -1;
  snprintf(whole, size + 1, "%.*s%s}", (int)json_used, json, about);
  block(HEADER, 1, whole, (uint32_t)size);
  free(whole);
  return 0;
}

void close_file(const char *reason, size_t dropped, const times_t *when, const char *not_enabled) {
  strays_t stray = strays();
  json_used = 0;
  say("{\"reason\":\"%s\",\"dropped\":%zu,\"starved\":%llu,\"foreign\":%llu,\"late\":%llu,\"cut\":%llu,\"unknown\":%llu,",
      reason, dropped, (unsigned long long)stray.starved, (unsigned long long)stray.foreign, (unsigned long long)stray.late,
      (unsigned long long)cut, (unsigned long long)unknown);
  say("\"unwanted\":%llu,\"launches\":%llu,", (unsigned long long)unwanted, (unsigned long long)launches);
  say("\"kernels\":%llu,\"open\":[%llu,%llu],\"close\":[%llu,%llu],\"not_enabled\":[%s],\"counts\":{",
      (unsigned long long)(layout.kinds[KERNEL].count + layout.kinds[GRAPH].count), (unsigned long long)when->open[0],
      (unsigned long long)when->open[1], (unsigned long long)when->close[0], (unsigned long long)when->close[1], not_enabled);
  const char *comma = "";
  for (uint32_t i = 0; i < KINDS; i++)
    if (layout.kinds[i].count) say("%s\"%u\":%llu", comma, i, (unsigned long long)layout.kinds[i].count), comma = ",";
  say("},\"in_step\":%d,\"stalls\":[[%llu,%llu],[%llu,%llu],[%llu,%llu]]}", when->in_step, (unsigned long long)when->open[0],
      (unsigned long long)when->open[1], (unsigned long long)when->disabled[0], (unsigned long long)when->disabled[1],
      (unsigned long long)when->flushed[0], (unsigned long long)when->flushed[1]);
  block(FOOTER, 1, json, (uint32_t)json_used);
  teller_close(&file);
}

int was_blind(void) { return launches >= 20 && !layout.kinds[KERNEL].count && !layout.kinds[GRAPH].count; }

int file_is_open(void) { return __atomic_load_n(&file.number, __ATOMIC_ACQUIRE) >= 0; }

const char *file_is_full(void) {
  if (__atomic_load_n(&broken, __ATOMIC_RELAXED)) return "disk";
  return __atomic_load_n(&full_up, __ATOMIC_RELAXED) ? "max_records" : NULL;
}

void abandon_file(void) {
  teller_close(&file);
  windows = 0;
}
