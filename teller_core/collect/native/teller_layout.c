/* The layout of records, as collect/cupti/layouts.py wrote it, and CUPTI's functions. */
#include "teller_cupti.h"

#include <dlfcn.h>

layout_t layout;
cupti_t cupti;
static uint32_t versions[8][2], version_ranges;
static const char *layout_problem;

char *read_text(const char *path) {
  FILE *file = fopen(path, "re");
  if (!file) return NULL;
  char *text = malloc(1 << 20);
  size_t n = text ? fread(text, 1, (1 << 20) - 1, file) : 0;
  fclose(file);
  if (text) text[n] = 0;
  return text;
}

static int read_kind(char *words, char **left) {
  unsigned long number = strtoul(strtok_r(words, " ", left), NULL, 10);
  if (number == 0 || number >= KINDS) return -1;
  kind_t *k = &layout.kinds[number];
  for (char *word; (word = strtok_r(NULL, " ", left));) {
    unsigned offset, length;
    int text = *word == '*';
    if (sscanf(word + text, "%u:%u", &offset, &length) != 2 || k->fields == FIELDS || offset + length > 4096) return -1;
    k->field[k->fields++] = (field_t){(uint16_t)offset, (uint16_t)length, text};
    k->row += text ? 4 : length;
  }
  return k->row && k->row <= STAGE / 8 ? 0 : -1;
}

static int know(uint32_t kind, uint32_t call, uint8_t what) {
  if ((kind != DRIVER && kind != RUNTIME) || call >= CALLS) return 0;
  layout.call[kind - DRIVER][call] |= what;
  return 1;
}

/* Lines: "teller-layout 1", "versions LOW HIGH", "kind NUMBER OFFSET:LENGTH *OFFSET:8 ...", "keep|drop|launch KIND CALL", "json {...}". */
void read_layout(void) {
  const char *path = getenv("TELLER_INJECT_LAYOUT");
  char *text = path ? read_text(path) : NULL, *lines, *left;
  layout_problem = path ? "layout_unreadable" : "no_layout";
  if (!text) return;
  if (strncmp(text, "teller-layout 1\n", 16)) return free(text);
  for (char *line = strtok_r(text + 16, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
    uint32_t a, b;
    if (!strncmp(line, "json ", 5)) {
      layout.json = strdup(line + 5);
    } else if (!strncmp(line, "kind ", 5)) {
      if (read_kind(line + 5, &left)) return free(text);
    } else if (sscanf(line, "versions %u %u", &a, &b) == 2) {
      if (version_ranges < 8) versions[version_ranges][0] = a, versions[version_ranges++][1] = b;
    } else if (sscanf(line, "keep %u %u", &a, &b) == 2) {
      if (know(a, b, KEEP)) layout.kinds[a].some = 1;
    } else if (sscanf(line, "drop %u %u", &a, &b) == 2) {
      know(a, b, DROP);
    } else if (sscanf(line, "launch %u %u", &a, &b) == 2) {
      know(a, b, LAUNCH);
    } else {
      return free(text);
    }
  }
  free(text);
  if (layout.json && version_ranges && layout.kinds[KERNEL].fields) layout_problem = NULL;
}

static int is_known(uint32_t v) {
  for (uint32_t i = 0; i < version_ranges; i++)
    if (v >= versions[i][0] && v <= versions[i][1]) return 1;
  return 0;
}

/* NULL, or why CUPTI cannot be used. The library that the program has loaded comes first: two would not share a driver. */
const char *find_cupti(void) {
  static const char *const loaded[] = {"libcupti.so.13", "libcupti.so.12"};
  const char *path = getenv("TELLER_INJECT_CUPTI");
  void *library = NULL;
  if (cupti.version) return NULL;
  if (layout_problem) return layout_problem;
  for (int i = 0; i < 2 && !library; i++) library = dlopen(loaded[i], RTLD_NOW | RTLD_NOLOAD);
  if (!library && path && *path) library = dlopen(path, RTLD_NOW);
  if (!library) return "no_cupti";
  const struct { const char *name; void *at; int wanted; } wanted[] = {
      {"cuptiGetTimestamp", &cupti.timestamp, 1},
      {"cuptiActivityRegisterCallbacks", &cupti.callbacks, 1},
      {"cuptiActivityEnable", &cupti.enable, 1},
      {"cuptiActivityDisable", &cupti.disable, 1},
      {"cuptiActivityFlushAll", &cupti.flush, 1},
      {"cuptiActivityGetNextRecord", &cupti.next, 1},
      {"cuptiActivityGetNumDroppedRecords", &cupti.dropped, 1},
      {"cuptiActivityPushExternalCorrelationId", &cupti.push, 1},
      {"cuptiActivityPopExternalCorrelationId", &cupti.pop, 1},
      {"cuptiSubscribe", &cupti.subscribe, 1},
      {"cuptiUnsubscribe", &cupti.unsubscribe, 1},
      {"cuptiGetThreadIdType", &cupti.get_thread_ids, 0},
      {"cuptiSetThreadIdType", &cupti.set_thread_ids, 0},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    void *function = dlsym(library, wanted[i].name);
    if (!function && wanted[i].wanted) return "no_cupti";
    memcpy(wanted[i].at, &function, sizeof function);
  }
  int (*get_version)(uint32_t *) = NULL;
  void *function = dlsym(library, "cuptiGetVersion");
  memcpy(&get_version, &function, sizeof function);
  if (!get_version || get_version(&layout.version)) return "no_cupti";
  if (!is_known(layout.version)) return "unknown_version";
  cupti.version = get_version;
  return NULL;
}
