/* Loaded into a process of a case: where it was, in C, when it died. */
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

static void died(int number) {
  void *frames[48];
  static const char text[] = "CRASH in C:\n";
  (void)!write(2, text, sizeof text - 1);
  backtrace_symbols_fd(frames, backtrace(frames, 48), 2);
  _exit(128 + number);
}
void tell_of_crashes(void) {
  void *frames[4];
  backtrace(frames, 4); /* loads what it needs now, not in the handler */
  signal(SIGSEGV, died);
  signal(SIGABRT, died);
}
