"""``teller``: the verbs of the pipeline on a command line.

Exit codes: 0 answered, 1 a fault of TELLER, 2 the input or the call, 130 interrupted. Everything that is slow to load is
loaded by the verb that needs it.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from teller_core.errors import InputError, TellerError
from teller_core.tell.progress import Told, nobody, shown_on

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

VERSION = "0.1.0"
"""Kept here and in pyproject.toml, which a test compares: looking it up takes longer than all else of ``teller --help``."""
METRICS = ("e2e", "ttft", "tpot", "itl_max", "slo")
INTERRUPTED = 130


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


def _read_into(
    paths: Sequence[Path],
    store: Any,
    *,
    together: bool | None = None,
    keep_prompts: bool = False,
    progress: Told | None = None,
) -> "ImportReport":
    from dataclasses import replace

    from teller_core.ingest.reading import read_group
    from teller_core.pipeline import STAGES, import_paths

    stages = replace(STAGES, read=partial(read_group, keep_prompts=True)) if keep_prompts else STAGES
    return import_paths(paths, store, together=together, progress=progress or nobody, stages=stages)


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
    if arguments is None and "--debug" not in words:
        sys.excepthook = _report_bug
    try:
        given = _parser().parse_args(words)
        return given.verb(given, verbs)
    except TellerError as error:
        return _refuse(error, as_json="--json" in words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Who read us has gone, as head does. The interpreter flushes once more at exit: let it go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _refuse(error: TellerError, *, as_json: bool) -> int:
    message = _spoken(str(error))
    if as_json:
        from teller_core.data.report import ErrorBody, ErrorReport

        body = ErrorBody(kind=error.kind, message=message, next=_spoken(error.next_step))
        print(ErrorReport(error=body).model_dump_json())
    print(f"teller: {message}", file=sys.stderr)
    return 2


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
    path = store_path(_option(given, "db"), os.environ)
    loaded = verbs()
    with loaded.open_store(path, read_only, None) as store:
        report = ask(loaded, store)
    _show(given, report)
    return 0


def _show(given: argparse.Namespace, report: "Model") -> None:
    if _option(given, "json"):
        print(report.model_dump_json(), flush=True)
        return
    from teller_core.tell.text import page

    print(page(report, _style()), flush=True)


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
    with shown_on(sys.stderr) as progress, _compiling(progress):
        return _answer(
            given,
            verbs,
            lambda loaded, store: loaded.import_paths(
                given.paths, store, together=together, keep_prompts=given.keep_prompts, progress=progress
            ),
            read_only=False,
        )


def _compiling(progress: Told) -> AbstractContextManager[None]:
    """On a terminal, say when the reader has to be compiled: that happens once, and looks like nothing happens."""
    if not sys.stderr.isatty():
        return nullcontext()
    from teller_core.data.compiled import announce_compiling

    return announce_compiling(lambda: progress("compiling the reader, once on this machine: up to a minute", 0, 0))


def _captures(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    # Nobody who asks what there is has made a mistake: a store that is not there yet is made, and is empty.
    there = store_path(_option(given, "db"), os.environ).exists()
    return _answer(given, verbs, lambda loaded, store: loaded.list_captures(store), read_only=there)


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
    named = _option(given, "db")
    command = [sys.executable, "-m", "teller_mcp", *(["--db", str(named)] if named else [])]
    for root in given.root:
        command += ["--root", str(root)]
    os.execv(sys.executable, command)


def _demo(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    from teller_core.lab import conversation

    with shown_on(sys.stderr) as progress:

        def told(text: str) -> None:
            progress(text, 0, 0)

        if not _option(given, "json"):
            conversation.demo(given.seed, given.fault, given.keep, style=_style(), say=_say, progress=told)
            return 0
        report = conversation.headless(given.seed, given.fault, given.keep, verbs=verbs(), progress=told)
    _show(given, report)
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


def _option(given: argparse.Namespace, name: str) -> Any:
    """An option that may stand before or after the verb."""
    return getattr(given, name, None)


def _path(text: str) -> Path:
    """A path that was really named: an empty one, as an unset variable of a shell gives, would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: is a variable of your shell not set?")
    return Path(text)


# argparse says the names of these two where they raise ValueError.
def number(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"it has to be over 0, not {text}")
    return value


def count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"it has to be at least 1, not {text}")
    return value


class _Parser(argparse.ArgumentParser):
    """A parser whose refusals read like all others."""

    def error(self, message: str) -> NoReturn:
        raise InputError("the call" if self.prog == "teller" else self.prog, message, f"See {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    common = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "--db", type=_path, metavar="FILE", help="where captures are kept (else TELLER_DB, else the user's data folder)"
    )
    common.add_argument("--json", action="store_true", help="print the answer as JSON")
    common.add_argument("--debug", action="store_true", help="show the full trace of a fault of TELLER itself")
    which = _Parser(add_help=False)
    which.add_argument("--capture", metavar="ID", help="any unique prefix of a capture's id (default: the newest)")
    metric = _Parser(add_help=False)
    metric.add_argument("--metric", choices=METRICS, default="e2e", help="what slow means (default: end to end)")
    metric.add_argument("--slo-ms", type=number, metavar="MS", help="the latency that was promised")
    top = _Parser(prog="teller", description="Why was this LLM request slow?", parents=[common])
    top.add_argument("--version", action="version", version=f"teller {VERSION}", help="show the version and leave")
    verbs = top.add_subparsers(metavar="VERB", required=True, parser_class=_Parser)
    _reading(verbs, common, which, metric)
    _inspecting(verbs, common, which)
    _running(verbs, common)
    return top


def _reading(verbs: Any, common: _Parser, which: _Parser, metric: _Parser) -> None:
    add = verbs.add_parser("import", parents=[common], help="read traces, logs and recorded folders")
    add.add_argument("paths", nargs="+", type=_path, metavar="PATH")
    joined = add.add_mutually_exclusive_group()
    joined.add_argument("--together", action="store_true", help="all of it was recorded together: one capture")
    joined.add_argument("--apart", action="store_true", help="every file is a capture of its own")
    add.add_argument("--keep-prompts", action="store_true", help="do not take people's prompts out of log lines")
    add.set_defaults(verb=_import)
    verbs.add_parser("captures", parents=[common], help="list what was imported").set_defaults(verb=_captures)
    slow = verbs.add_parser("slow", parents=[common, which, metric], help="list the requests, slowest first")
    slow.add_argument("--limit", type=count, default=20, help="rows of a page (default: 20)")
    slow.add_argument("--cursor", help="next_cursor of the page before")
    slow.set_defaults(verb=_slow)
    why = verbs.add_parser("why", parents=[common, which, metric], help="say why a request was slow")
    why.add_argument("request", metavar="REQUEST", help="its number, or the engine's, the client's or the trace's id")
    why.set_defaults(verb=_why)


def _inspecting(verbs: Any, common: _Parser, which: _Parser) -> None:
    cut = verbs.add_parser("slice", parents=[common, which], help="show the spans that bear on a request or a step")
    cut.add_argument("target", nargs="+", metavar="TARGET", help="request 42, step 17, or a span's handle RANK:ROW")
    cut.add_argument("--budget", type=count, default=4000, help="how much to show, in tokens (default: 4000)")
    cut.add_argument(
        "--rank", type=int, help="one process, by its position among the capture's ranks, from 0 (default: all)"
    )
    cut.set_defaults(verb=_slice)
    explain = verbs.add_parser("explain-op", parents=[common, which], help="say what an operator is and does here")
    explain.add_argument("name", metavar="NAME")
    explain.set_defaults(verb=_explain)
    compare = verbs.add_parser("compare", parents=[common, which], help="compare two requests or two captures")
    compare.add_argument("before", metavar="BEFORE", help="a request, CAPTURE/REQUEST, or a capture's id")
    compare.add_argument("after", metavar="AFTER")
    compare.set_defaults(verb=_compare)


def _running(verbs: Any, common: _Parser) -> None:
    serve = verbs.add_parser("serve", parents=[common], help="run the MCP server over stdio")
    serve.add_argument("--root", type=Path, action="append", default=[], metavar="FOLDER", help="what may be imported")
    serve.set_defaults(verb=_serve)
    demo = verbs.add_parser("demo", parents=[common], help="break a real service, and find out why it was slow")
    demo.add_argument("--seed", type=int, help="repeat an episode (default: by chance)")
    demo.add_argument("--fault", metavar="NAME", help="which fault strikes (default: by chance)")
    demo.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recording and the truth here")
    demo.set_defaults(verb=_demo)


if __name__ == "__main__":
    sys.exit(main())
