"""One command from its words to its exit code: what ends it early, and how its refusals and our own faults are said."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from teller_core.calls import parser
from teller_core.cli import doctor, lab, learning, model, reading, recording
from teller_core.cli.speech import complain, give_up_stdout, spoken
from teller_core.cli.verbs import Verbs, pipeline_verbs
from teller_core.data.means import within_means
from teller_core.errors import TellerError

INTERRUPTED = 130
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What else asks a process to end: it is to leave as little behind as Ctrl-C does."""
VERBS: Mapping[str, Callable[..., int]] = {
    **reading.VERBS,
    **learning.VERBS,
    **recording.VERBS,
    **doctor.VERBS,
    **lab.VERBS,
    **model.VERBS,
}


def main(arguments: Sequence[str] | None = None, verbs: Callable[[], Verbs] = pipeline_verbs) -> int:
    """Run one command and return its exit code. ``arguments`` default to those of the process."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    ours = words[: words.index("--")] if "--" in words else words  # behind it stands the command of somebody else
    if arguments is None:
        _open_streams()
    if arguments is None and "--debug" not in ours:
        sys.excepthook = _report_bug
    ignored = [each for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN]
    try:
        with _one_interrupt(ends=arguments is None), within_means("the command"):
            given = parser(VERBS).parse_args(words, argparse.Namespace(ignored=ignored))
            return given.verb(given, verbs)
    except TellerError as error:
        return _refuse(error, as_json="--json" in ours)
    except KeyboardInterrupt as interrupt:
        complain("teller: interrupted. What is stored is whole; run it again.")
        return 128 + interrupt.args[0] if interrupt.args else INTERRUPTED
    except BrokenPipeError:
        give_up_stdout()  # who read us has gone, as head does
        return 0


@contextmanager
def _one_interrupt(*, ends: bool) -> Generator[None]:
    """Ctrl-C, or being told to end, ends the block once: whoever does it again is not to end what tidies up, nor, where the
    process ``ends`` with the block, its last line. The KeyboardInterrupt holds the number of the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = False
    # Who started this with one of the others ignored, as nohup does, meant it to run on.
    heard = [signal.SIGINT, *(each for each in ENDING if signal.getsignal(each) is signal.SIG_DFL)]

    def stop(number: int, _: object) -> None:
        nonlocal interrupted
        interrupted = True
        for each in heard:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt(number)

    before = {each: signal.signal(each, stop) for each in heard}
    try:
        yield
    finally:
        if not (ends and interrupted):
            for each, handler in before.items():
                signal.signal(each, handler or signal.SIG_DFL)


def _open_streams() -> None:
    """Where the process was started without one of its three streams, let it go nowhere: the next file opened would get its
    number, and what is printed would end up in the database.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or os.fdopen(0, "r")
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _refuse(error: TellerError, *, as_json: bool) -> int:
    message = spoken(str(error))
    if as_json:
        from teller_core.data.report import ErrorBody, ErrorReport

        body = ErrorBody(kind=error.kind, message=message, next=spoken(error.next_step))
        with suppress(OSError):
            print(ErrorReport(error=body).model_dump_json(), flush=True)
    complain(f"teller: {message}")
    return 2


def _report_bug(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """What a fault of our own looks like: one line, and how to report it. The interpreter then exits with 1."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    print(
        f"teller: internal fault: {kind.__name__} at {place}, a bug in TELLER and not in your call. "
        "Run it again with --debug and report its output as an issue, after a look that nothing in it is private.",
        file=sys.stderr,
    )
