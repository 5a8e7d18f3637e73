/* NVTX events of any program: the library that NVTX loads by NVTX_INJECTION64_PATH.
 *
 * Struct layouts and the numbers of modules and functions are those of NVTX 3's public interface. Kinds of lines:
 * ingest/recorder/nvtx_tsv.py.
 */
#include "teller_inject.h"

#include <wchar.h>

enum { NAME = 240, DOMAIN = 64 };
enum { ASCII = 1, UNICODE = 2, REGISTERED = 3 };

typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  union {
    uint64_t u;
    int64_t i;
    double d;
    uint32_t u32;
    int32_t i32;
    float f;
  } payload;
  int32_t message_type;
  const void *message;
} attributes_t;

typedef struct {
  char name[DOMAIN];
  uint32_t place; /* in the depths of a thread */
} domain_t;

static uint64_t next_range = 1, domains;

static char *digits(char *to, uint64_t number) {
  char text[20];
  int n = 0;
  do text[n++] = (char)('0' + number % 10);
  while (number /= 10);
  while (n) *to++ = text[--n];
  return to;
}

/* Text without the bytes that end a field or a line, cut between characters of UTF-8 where it is too long. */
static char *clean(char *to, size_t room, const char *text) {
  size_t n = 0;
  for (; text && text[n] && n < room; n++) to[n] = (unsigned char)text[n] < ' ' || text[n] == 127 ? ' ' : text[n];
  if (n == room && text[n])
    while (n && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
  return to + n;
}

static void narrow(char *to, size_t room, const wchar_t *text) {
  size_t n = 0;
  for (; text && *text && n + 5 < room; text++) {
    uint32_t c = (uint32_t)*text;
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) c = 0xFFFD;
    if (c < 0x80) {
      to[n++] = (char)c;
    } else if (c < 0x800) {
      to[n++] = (char)(0xC0 | c >> 6), to[n++] = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
      to[n++] = (char)(0xE0 | c >> 12), to[n++] = (char)(0x80 | (c >> 6 & 63)), to[n++] = (char)(0x80 | (c & 63));
    } else {
      to[n++] = (char)(0xF0 | c >> 18), to[n++] = (char)(0x80 | (c >> 12 & 63));
      to[n++] = (char)(0x80 | (c >> 6 & 63)), to[n++] = (char)(0x80 | (c & 63));
    }
  }
  to[n] = 0;
}

static char *payload(char *to, const attributes_t *e) {
  int64_t whole;
  switch (e->payload_type) {
    case 2: whole = e->payload.i; break;
    case 5: whole = e->payload.i32; break;
    case 3:
    case 6: {
      int n = snprintf(to, 24, "%.9g", e->payload_type == 3 ? e->payload.d : (double)e->payload.f);
      for (char *c = to; c < to + n; c++)
        if (*c == ',') *c = '.'; /* some countries' decimal point */
      return to + n;
    }
    case 4: return digits(to, e->payload.u32);
    case 1: return digits(to, e->payload.u);
    default: return digits(to, 0);
  }
  if (whole < 0) *to++ = '-';
  return digits(to, whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole);
}

static void event(char kind, const domain_t *domain, const attributes_t *e, const char *text, uint64_t id) {
  int saved = errno;
  thread_t *t = teller_me();
  char line[MOST_LINE], *to = line, wide[NAME + 8];
  if (!t) return;
  if (e && e->size >= sizeof *e) {
    if (e->message_type == ASCII || e->message_type == REGISTERED) text = e->message;
    if (e->message_type == UNICODE) narrow(wide, sizeof wide, e->message), text = wide;
  }
  *to++ = kind, *to++ = '\t';
  to = digits(to, teller_now(CLOCK_MONOTONIC)), *to++ = '\t';
  to = digits(to, (uint64_t)t->tid), *to++ = '\t';
  if (domain) to = clean(to, DOMAIN, domain->name);
  *to++ = '\t';
  to = clean(to, NAME, text), *to++ = '\t';
  to = digits(to, e ? e->category : 0), *to++ = '\t';
  to = e ? payload(to, e) : digits(to, 0), *to++ = '\t';
  to = digits(to, id), *to++ = '\n';
  teller_keep_line(t, line, (size_t)(to - line));
  errno = saved;
}

static void name(char kind, const char *domain, uint32_t number, const char *text) {
  char line[MOST_LINE], *to = line;
  *to++ = kind, *to++ = '\t';
  if (kind == 'K') to = clean(to, DOMAIN, domain), *to++ = '\t';
  to = digits(to, number), *to++ = '\t';
  to = clean(to, NAME, text), *to++ = '\n';
  teller_keep_name(line, (size_t)(to - line));
}

static int level(const domain_t *domain, int change) {
  thread_t *t = teller_me();
  if (!t) return -2; /* NVTX_NO_PUSH_POP_TRACKING */
  int *depth = &t->depth[domain ? domain->place : 0];
  if (change > 0) return (*depth)++;
  return *depth > 0 ? --*depth : -1;
}

static uint64_t range(void) { return __atomic_fetch_add(&next_range, 1, __ATOMIC_RELAXED); }

#define WIDE(text) char narrowed[NAME + 8]; narrow(narrowed, sizeof narrowed, text)

static void MarkEx(const attributes_t *e) { event('I', NULL, e, "", 0); }
static void MarkA(const char *m) { event('I', NULL, NULL, m, 0); }
static void MarkW(const wchar_t *m) { WIDE(m); MarkA(narrowed); }
static uint64_t RangeStartEx(const attributes_t *e) { uint64_t id = range(); event('S', NULL, e, "", id); return id; }
static uint64_t RangeStartA(const char *m) { uint64_t id = range(); event('S', NULL, NULL, m, id); return id; }
static uint64_t RangeStartW(const wchar_t *m) { WIDE(m); return RangeStartA(narrowed); }
static void RangeEnd(uint64_t id) { event('F', NULL, NULL, "", id); }
static int RangePushEx(const attributes_t *e) { event('B', NULL, e, "", 0); return level(NULL, 1); }
static int RangePushA(const char *m) { event('B', NULL, NULL, m, 0); return level(NULL, 1); }
static int RangePushW(const wchar_t *m) { WIDE(m); return RangePushA(narrowed); }
static int RangePop(void) { event('E', NULL, NULL, "", 0); return level(NULL, -1); }
static void NameCategoryA(uint32_t c, const char *n) { name('K', "", c, n); }
static void NameCategoryW(uint32_t c, const wchar_t *n) { WIDE(n); name('K', "", c, narrowed); }
static void NameOsThreadA(uint32_t t, const char *n) { name('T', "", t, n); }
static void NameOsThreadW(uint32_t t, const wchar_t *n) { WIDE(n); name('T', "", t, narrowed); }

static void DomainMarkEx(domain_t *d, const attributes_t *e) { event('I', d, e, "", 0); }
static uint64_t DomainRangeStartEx(domain_t *d, const attributes_t *e) {
  uint64_t id = range();
  event('S', d, e, "", id);
  return id;
}
static void DomainRangeEnd(domain_t *d, uint64_t id) { event('F', d, NULL, "", id); }
static int DomainRangePushEx(domain_t *d, const attributes_t *e) { event('B', d, e, "", 0); return level(d, 1); }
static int DomainRangePop(domain_t *d) { event('E', d, NULL, "", 0); return level(d, -1); }
static void DomainNameCategoryA(domain_t *d, uint32_t c, const char *n) { name('K', d ? d->name : "", c, n); }
static void DomainNameCategoryW(domain_t *d, uint32_t c, const wchar_t *n) {
  WIDE(n);
  DomainNameCategoryA(d, c, narrowed);
}
static void *DomainRegisterStringA(domain_t *d, const char *text) {
  (void)d;
  return text ? teller_registered(text, NAME + 8) : NULL;
}
static void *DomainRegisterStringW(domain_t *d, const wchar_t *text) { WIDE(text); return DomainRegisterStringA(d, narrowed); }
static domain_t *DomainCreateA(const char *n) {
  domain_t *d = calloc(1, sizeof *d);
  if (!d) return NULL;
  clean(d->name, sizeof d->name - 1, n);
  d->place = 1 + (uint32_t)(__atomic_fetch_add(&domains, 1, __ATOMIC_RELAXED) % (DEPTHS - 1));
  return d;
}
static domain_t *DomainCreateW(const wchar_t *n) { WIDE(n); return DomainCreateA(narrowed); }

typedef void (*function_t)(void);
typedef struct {
  size_t size;
  int (*module)(int module, function_t ***table, unsigned *count);
} callbacks_t;
enum { CALLBACKS = 1, CORE = 1, CORE2 = 5 };

static void install(const callbacks_t *callbacks, int module, void *const *ours, unsigned many) {
  function_t **table;
  unsigned count;
  if (!callbacks->module(module, &table, &count)) return;
  for (unsigned i = 0; i < many && i < count; i++)
    if (ours[i] && table[i]) *table[i] = (function_t)ours[i];
}

EXPORTED int InitializeInjectionNvtx2(const void *(*tables)(uint32_t)) {
  const callbacks_t *callbacks = tables ? tables(CALLBACKS) : NULL;
  if (!callbacks || callbacks->size < sizeof *callbacks || !teller_settings()) return 0;
  void *const core[] = {NULL,        MarkEx,      MarkA,    MarkW,         RangeStartEx,  RangeStartA,   RangeStartW,  RangeEnd,
                        RangePushEx, RangePushA, RangePushW, RangePop, NameCategoryA, NameCategoryW, NameOsThreadA, NameOsThreadW};
  void *const core2[] = {NULL, DomainMarkEx, DomainRangeStartEx, DomainRangeEnd, DomainRangePushEx, DomainRangePop, NULL, NULL,
                         DomainNameCategoryA, DomainNameCategoryW, DomainRegisterStringA, DomainRegisterStringW,
                         DomainCreateA, DomainCreateW};
  install(callbacks, CORE, core, sizeof core / sizeof *core);
  install(callbacks, CORE2, core2, sizeof core2 / sizeof *core2);
  return 1;
}
