"""The verbs that read what was recorded, and answer questions about it."""

from teller_core.calls.arguments import Add, Parser, count, path

KINDS = ("any", "request", "span", "annotation", "python", "operator", "runtime", "kernel", "communication", "log_line")


def reading(add: Add) -> None:
    """Add import, captures and formats."""
    read = add("import", "read traces, logs and recorded folders; start here")
    read.add_argument(
        "paths", nargs="+", type=path, metavar="PATH", help="files, folders, archives, or a quoted pattern"
    )
    joined = read.add_mutually_exclusive_group()
    joined.add_argument("--together", action="store_true", help="all of it was recorded together: one capture")
    joined.add_argument("--apart", action="store_true", help="every file is a capture of its own")
    read.add_argument("--keep-prompts", action="store_true", help="do not take people's prompts out of log lines")
    read.add_argument(
        "--jobs", type=count, metavar="N", help="files read at once (default: what processors and memory allow)"
    )
    add("captures", "list what was imported")
    add("formats", "list what can be read")


def searching(add: Add) -> None:
    """Add search."""
    search = add("search", "find a request's id, a name of spans or a line of a log by any part of it")
    search.add_argument("text", nargs="+", metavar="TEXT", help="words that it holds, all of them, whichever case")
    search.add_argument("--kind", choices=KINDS, default="any", help="of what alone (span: of any layer)")
    search.add_argument(
        "--capture", metavar="ID", help="any unique prefix of a capture's id, or all (default: the newest)"
    )
    _paged(search)


def _paged(verb: Parser) -> None:
    verb.add_argument("--limit", type=count, default=20, help="rows of a page (default: 20)")
    verb.add_argument("--cursor", help="the next page: what the page before says behind More")


def slow(verb: Parser) -> None:
    """The arguments of slow."""
    verb.add_argument(
        "--view", choices=("vertical", "horizontal"), default="vertical", help="requests, or ranks side by side"
    )
    _paged(verb)


def fleet(verb: Parser) -> None:
    """The arguments of fleet."""
    when = 'a date ("2026-12-01 05:30", UTC), or how long before the last request: 30min, 6h, 2d'
    verb.add_argument("--since", metavar="WHEN", help=f"{when} (default: 1h)")
    verb.add_argument("--until", metavar="WHEN", help="the same (default: all that came since)")
    verb.add_argument(
        "--service", metavar="NAME", help="its captures alone: its name as the answer has it, engine or model"
    )


def learn(verb: Parser) -> None:
    """The arguments of learn."""
    verb.add_argument(
        "captures", nargs="*", metavar="CAPTURE", help="their ids, `last`, or files and folders as import reads them"
    )
    verb.add_argument("--as", dest="name", metavar="NAME", help="what the baseline is called (default: the service's)")
    verb.add_argument(
        "--healthy", action="store_true", help="all was well, although causes were found: that is how it always is"
    )
    other = verb.add_mutually_exclusive_group()
    other.add_argument("--list", action="store_true", help="say which baselines there are")
    other.add_argument("--forget", metavar="NAME", help="remove one")


def inspecting(add: Add, which: Parser, named: Parser) -> None:
    """Add slice, explain-op, compare and what-if; ``which``: capture, ``named``: request."""
    cut = add("slice", "show the spans that bear on a request or a step", which)
    cut.add_argument("target", nargs="+", metavar="TARGET", help="request 42, step 17, or a span's handle RANK:ROW")
    cut.add_argument(
        "--budget",
        type=count,
        default=4000,
        help="how much to show, in tokens of an assistant (default: 4000, some 50 lines)",
    )
    cut.add_argument(
        "--nodes", type=count, metavar="N", help="the most lines of spans (default: what the budget allows)"
    )
    cut.add_argument(
        "--rank", type=int, help="one process, by its position among the capture's ranks, from 0 (default: all)"
    )
    instead = cut.add_mutually_exclusive_group()
    instead.add_argument(
        "--raw", action="store_true", help="the whole step as Trace Pair Encoding, as a model reads it"
    )
    instead.add_argument("--chrome", type=path, metavar="FILE", help="write all its spans as a trace for Perfetto")
    explain = add("explain-op", "say what an operator is and does here", which)
    explain.add_argument("name", metavar="NAME", help="as a slice shows it: aten::mm, a kernel, a collective")
    compare = add("compare", "compare two requests or two captures", which)
    compare.add_argument("before", metavar="BEFORE", help="a request, CAPTURE/REQUEST, or a capture's id")
    compare.add_argument("after", metavar="AFTER", help="another one of the same kind")
    what_if = "say how much sooner a request would have ended had something taken another time"
    suppose = add("what-if", what_if, which, named)
    suppose.add_argument(
        "supposed",
        nargs="+",
        metavar="TARGET=DURATION",
        help='what took what instead, all of it together: "step 17=10ms", "step 17=usual" (what its work predicts), '
        "steps=usual (those that took longer), a span's handle RANK:ROW=1ms, or an operator's name as aten::mm=1ms",
    )
    suppose.add_argument("--metric", choices=("e2e", "ttft"), default="e2e", help="ended, or had its first token")
