"""``teller``: the verbs of the pipeline on a command line.

Exit codes: 0 answered, 1 a fault of TELLER, 2 the input or the call, 130 interrupted. Everything that is slow to load is
loaded by the verb that needs it.
"""

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teller_core.calls import VERSION, option, parser
from teller_core.data.means import within_means
from teller_core.errors import InputError, TellerError
from teller_core.tell.progress import shown_on

if TYPE_CHECKING:
    from teller_core.data.report import (
        CapturesReport,
        CompareReport,
        ImportReport,
        Model,
        OperatorReport,
        SliceReport,
        SlowReport,
        WhyReport,
    )
    from teller_core.tell.layout import Style

INTERRUPTED = 130
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What else asks a process to end: it is to leave as little behind as Ctrl-C does."""

__all__ = ["VERSION", "Verbs", "main", "pipeline_verbs", "store_path"]


@dataclass(frozen=True)
class Verbs:
    """What both mouths of TELLER, this one and the MCP server, ask of the core. Each raises TellerError."""

    open_store: Callable[[Path, bool, float | None], AbstractContextManager[Any]]
    """The store at a path; whether it is only read, and then must be there; and after how many seconds it refuses."""
    import_paths: "Callable[..., ImportReport]"
    list_captures: "Callable[..., CapturesReport]"
    slow: "Callable[..., SlowReport]"
    why: "Callable[..., WhyReport]"
    causal_slice: "Callable[..., SliceReport]"
    explain_operator: "Callable[..., OperatorReport]"
    compare: "Callable[..., CompareReport]"


def pipeline_verbs() -> Verbs:
    """The verbs of the core. Loading them takes a moment: call this when the first answer is wanted."""
    from teller_core import answers
    from teller_core.store.store import Store

    return Verbs(
        open_store=lambda path, read_only, deadline: Store.open(path, read_only=read_only, deadline_s=deadline),
        import_paths=_read_into,
        list_captures=answers.list_captures,
        slow=answers.slow,
        why=answers.why,
        causal_slice=answers.causal_slice,
        explain_operator=answers.explain_operator,
        compare=answers.compare,
    )


def _read_into(paths: Sequence[Path], store: Any, **how: Any) -> "ImportReport":
    from teller_core.pipeline import import_paths

    return import_paths(paths, store, **how)


def store_path(named: Path | None, environment: Mapping[str, str]) -> Path:
    """The database to use: ``named``, else TELLER_DB, else one in the user's data folder, which is made for its user alone."""
    if named is not None:
        return named
    if environment.get("TELLER_DB"):
        return Path(environment["TELLER_DB"])
    data = Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    folder = data / "teller"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        why = f"its folder cannot be made ({error.strerror})"
        raise InputError("the default database", why, "Name another one with --db FILE") from None
    return folder / "teller.db"


def main(arguments: Sequence[str] | None = None, verbs: Callable[[], Verbs] = pipeline_verbs) -> int:
    """Run one command and return its exit code. ``arguments`` default to those of the process."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if arguments is None:
        _open_streams()
    if arguments is None and "--debug" not in words:
        sys.excepthook = _report_bug
    try:
        with _one_interrupt(ends=arguments is None), within_means("the command"):
            given = parser(VERBS).parse_args(words)
            return given.verb(given, verbs)
    except TellerError as error:
        return _refuse(error, as_json="--json" in words)
    except KeyboardInterrupt as interrupt:
        _complain("teller: interrupted. What is stored is whole; run it again.")
        return 128 + interrupt.args[0] if interrupt.args else INTERRUPTED
    except BrokenPipeError:
        _give_up_stdout()  # who read us has gone, as head does
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
    message = _spoken(str(error))
    if as_json:
        from teller_core.data.report import ErrorBody, ErrorReport

        body = ErrorBody(kind=error.kind, message=message, next=_spoken(error.next_step))
        with suppress(OSError):
            print(ErrorReport(error=body).model_dump_json(), flush=True)
    _complain(f"teller: {message}")
    return 2


def _complain(line: str) -> None:
    """Say it to whoever listens: that nobody can hear it changes no exit code."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _spoken(text: str) -> str:
    """A refusal on one line, with our names of verbs: the core leaves them in backquotes, as the server has others."""
    return re.sub(r"`([a-z-]+)`", r"`teller \1`", " ".join(text.split()))


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


def _answer(
    given: argparse.Namespace,
    verbs: Callable[[], Verbs],
    ask: "Callable[[Verbs, Any], Model]",
    *,
    read_only: bool = True,
) -> int:
    """Open the store, ask, print."""
    # The path first: a wrong one is told at once.
    path = store_path(option(given, "db"), os.environ)
    loaded = verbs()
    with loaded.open_store(path, read_only, None) as store:
        report = ask(loaded, store)
    _show(given, report)
    return 0


def _show(given: argparse.Namespace, report: "Model") -> None:
    if option(given, "json"):
        _say(report.model_dump_json())
        return
    from teller_core.tell.text import page

    _say(page(report, _style()))


def _style() -> "Style":
    import shutil

    from teller_core.tell.layout import Style

    screen = sys.stdout.isatty()
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return Style(
        width=min(120, shutil.get_terminal_size((100, 24)).columns),
        color=screen and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
        unicode=encoding.startswith("utf"),
    )


def _import(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    together = True if given.together else False if given.apart else None
    how = {"together": together, "keep_prompts": given.keep_prompts, "jobs": given.jobs}
    with shown_on(sys.stderr) as progress:
        return _answer(
            given,
            verbs,
            lambda loaded, store: loaded.import_paths(given.paths, store, **how, progress=progress),
            read_only=False,
        )


def _captures(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    # Nobody who asks what there is has made a mistake: a store that is not there yet is made, and is empty.
    there = store_path(option(given, "db"), os.environ).exists()
    return _answer(given, verbs, lambda loaded, store: loaded.list_captures(store), read_only=there)


def _formats(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    from teller_core.ingest.catalog import formats

    _show(given, formats())
    return 0


def _slow(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(
        given,
        verbs,
        lambda loaded, store: loaded.slow(
            store,
            capture=given.capture,
            metric=given.metric,
            slo_ms=given.slo_ms,
            limit=given.limit,
            cursor=given.cursor,
            view=given.view,
        ),
    )


def _why(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(
        given,
        verbs,
        lambda loaded, store: loaded.why(
            store, given.request, capture=given.capture, metric=given.metric, slo_ms=given.slo_ms
        ),
    )


def _slice(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    target = " ".join(given.target)
    return _answer(
        given,
        verbs,
        lambda loaded, store: loaded.causal_slice(
            store, target, capture=given.capture, rank=given.rank, budget=given.budget
        ),
    )


def _explain(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(
        given, verbs, lambda loaded, store: loaded.explain_operator(store, given.name, capture=given.capture)
    )


def _compare(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(
        given,
        verbs,
        lambda loaded, store: loaded.compare(store, given.before, given.after, capture=given.capture),
    )


def _serve(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    # The server stands above the core, which therefore does not import it: this process becomes it.
    named = option(given, "db")
    command = [sys.executable, "-m", "teller_mcp", *(["--db", str(named)] if named else [])]
    for root in given.root:
        command += ["--root", str(root)]
    os.execv(sys.executable, command)


def _demo(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    from teller_core.lab import conversation

    with shown_on(sys.stderr) as progress:

        def told(text: str) -> None:
            progress(text, 0, 0)

        if not option(given, "json"):
            conversation.demo(given.seed, given.fault, given.keep, style=_style(), say=_say, progress=told)
            return 0
        report = conversation.headless(given.seed, given.fault, given.keep, verbs=verbs(), progress=told)
    _show(given, report)
    return 0


def _say(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _give_up_stdout()
        why = f"it cannot be written ({error.strerror})"
        raise InputError("the answer", why, "Send it where there is room for it") from None


def _give_up_stdout() -> None:
    """The interpreter flushes once more at exit: let it go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


VERBS: Mapping[str, Callable[..., int]] = {
    "import": _import,
    "captures": _captures,
    "formats": _formats,
    "slow": _slow,
    "why": _why,
    "slice": _slice,
    "explain-op": _explain,
    "compare": _compare,
    "serve": _serve,
    "demo": _demo,
}


if __name__ == "__main__":
    sys.exit(main())
