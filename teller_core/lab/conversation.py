"""The demo's conversation: a real MCP client asks a real server what a person would ask, and then the truth is told."""

import secrets
import sys
import tempfile
import textwrap
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teller_core.data.report import (
    CompareReport,
    DemoReport,
    ImportReport,
    Model,
    SliceReport,
    SlowReport,
    TruthReport,
    WhyReport,
)
from teller_core.data.whole import made_folder
from teller_core.errors import TellerError
from teller_core.lab.profiling import WARM
from teller_core.lab.requests import warm_up
from teller_core.tell.layout import Style, milliseconds, plain
from teller_core.tell.text import page

if TYPE_CHECKING:
    from mcp import Client

    from teller_core.lab.truth import Truth

Say = Callable[[str], None]
WARMING = frozenset(ask.rid for ask in (*warm_up(), *WARM))
"""Requests that are no part of an episode's load."""
PATIENCE = 12
"""How often an import that goes on is waited for: the first one on a machine compiles the reader."""


def demo(seed: int | None, fault: str | None, keep: Path | None, *, style: Style, say: Say, progress: Say) -> None:
    """Run an episode, hold the conversation about it, tell the truth. ``say`` prints; ``progress`` is told what goes on.

    Raises TellerError where the service or the server fails.
    """
    import anyio

    with _folder(keep) as folder:
        truth = _episode(seed, fault, folder, progress, say)
        talk = Talk(style, say)
        anyio.run(_converse, folder, truth, talk)
        if keep is not None:
            say(f"\nKept in {keep}: bundle/ (the recording), truth.json, teller.db.")


def headless(seed: int | None, fault: str | None, keep: Path | None, *, verbs: Any, progress: Say) -> DemoReport:
    """Run an episode and diagnose its slowest struck request, or the slowest of its load where nothing struck. The requests
    that warm the service up are a cold start, and no part of the load.

    ``verbs`` are those of ``teller_core.cli.Verbs``, which stands above this module. Raises TellerError.
    """
    with _folder(keep) as folder:
        truth = _episode(seed, fault, folder, progress, progress)
        with verbs.open_store(folder / "teller.db", False, None) as store:
            verbs.import_paths([folder / "bundle"], store)
            if truth.struck:
                answers: list[WhyReport] = [verbs.why(store, name) for name in truth.struck]
            else:
                slowest: SlowReport = verbs.slow(store, limit=len(WARMING) + 1)
                loaded = [row for row in slowest.rows if row[1] not in WARMING]
                answers = [verbs.why(store, str(row[0])) for row in loaded[:1]]
    if not answers:
        raise TellerError("The demo", "its recording holds no request", "Run it with --keep and read server.log")
    answer = max(answers, key=lambda report: report.value_ms or 0.0)
    return DemoReport(truth=TruthReport(cause=truth.cause, struck=list(truth.struck)), answer=answer)


@contextmanager
def _folder(keep: Path | None) -> Generator[Path]:
    if keep is not None:
        made_folder(keep)
        if any(keep.iterdir()):
            raise TellerError(f"--keep {keep.name}", "the folder is not empty", "Name a new one")
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="teller-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "episode"
        folder.mkdir()
        yield folder


def _episode(seed: int | None, fault: str | None, folder: Path, progress: Say, say: Say) -> "Truth":
    from teller_core.lab.demo import run_episode

    chosen = secrets.randbelow(1_000_000) if seed is None else seed
    say(f"A real service answers some 40 requests while something may go wrong (repeat it with --seed {chosen}).")
    truth = run_episode(chosen, fault, folder, progress)
    progress("")
    return truth


class Talk:
    """A conversation on a terminal: who says what, and which tools are called."""

    def __init__(self, style: Style, say: Say) -> None:
        self._style = style
        self._say = say

    def ask(self, question: str) -> None:
        """What the person says."""
        self._say("\n" + self._style.paint("You", "36;1") + f"     {question}")

    def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """A tool that is called on the way."""
        shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        self._say(self._style.dim(f"        > {tool}({shown})"))

    def tell(self, *paragraphs: str) -> None:
        """What TELLER answers, in its own words."""
        width = min(self._style.width, 100)
        for at, text in enumerate(paragraphs):
            first = "TELLER  " if at == 0 else " " * 8
            lines = textwrap.wrap(plain(text, 2000), width, initial_indent=first, subsequent_indent=" " * 8)
            shown = "\n".join(lines)
            self._say(shown.replace("TELLER", self._style.paint("TELLER", "35;1"), 1) if at == 0 else shown)

    def show(self, report: Model, most: int) -> None:
        """The first lines of a report's page."""
        narrow = Style(self._style.width - 8, self._style.color, self._style.unicode)
        lines = page(report, narrow).splitlines()
        for line in lines[:most]:
            self._say(" " * 8 + line)
        if len(lines) > most:
            self._say(self._style.dim(f"        ... {len(lines) - most} more lines"))


async def _converse(folder: Path, truth: "Truth", talk: Talk) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    arguments = ["-m", "teller_mcp", "--root", str(folder), "--db", str(folder / "teller.db")]
    server = StdioServerParameters(command=sys.executable, args=arguments, cwd=folder)
    refusal: TellerError | None = None
    with (folder / "teller-mcp.log").open("w") as log:
        async with Client(stdio_client(server, errlog=log)) as client:
            try:
                request, answer = await _questions(client, talk)
                await _reveal(client, truth, request, answer, talk)
            except TellerError as error:
                refusal = error  # raised in here, the client's task group would wrap it
    if refusal is not None:
        raise refusal


async def _questions(client: "Client", talk: Talk) -> tuple[int, WhyReport]:
    """The four questions. Returns the request they were about, and the verdict on it."""
    talk.ask("I recorded the service. Which requests were slow?")
    read = ImportReport.model_validate(await _call(client, talk, "import_trace", paths=["bundle"]))
    capture = read.captures[0].id[:12]
    table = SlowReport.model_validate(await _call(client, talk, "list_slow_requests", capture=capture, limit=40))
    talk.tell(_what_was_read(read), table.note)
    talk.show(table.model_copy(update={"rows": table.rows[:5], "note": "", "next_cursor": None, "contrast": None}), 12)
    slow, peer = _choose(table)

    talk.ask(f"Why was request {slow} slow?")
    answer = WhyReport.model_validate(await _call(client, talk, "run_rca", request=slow, capture=capture))
    talk.tell(answer.explanation or answer.reason)
    talk.show(answer.model_copy(update={"explanation": "", "reason": ""}), 60)

    talk.ask("Show me what happened there.")
    step = answer.findings[0].step if answer.findings else None
    target = f"request {slow}" if step is None else f"step {step}"
    piece = SliceReport.model_validate(await _call(client, talk, "get_causal_slice", target=target, capture=capture))
    talk.tell(f"{len(piece.lines)} lines bear on it; {piece.cut} spans of the step do not matter here.")
    talk.show(piece, 22)

    talk.ask(f"Is that normal? Request {peer} was faster.")
    beside = await _call(client, talk, "compare", before=peer, after=slow, capture=capture)
    compared = CompareReport.model_validate(beside)
    talk.tell(compared.explanation or compared.note)
    talk.show(compared.model_copy(update={"explanation": ""}), 14)
    return slow, answer


async def _call(client: "Client", talk: Talk | None, tool: str, **arguments: Any) -> dict[str, Any]:
    """The report in the answer of ``tool``. Raises TellerError for a refusal."""
    if talk is not None:
        talk.call(tool, arguments)
    text = ""
    for _ in range(PATIENCE):
        result = await client.call_tool(tool, arguments)
        if not result.is_error:
            content: dict[str, Any] = result.structured_content or {}
            return {key: value for key, value in content.items() if key not in _ADDED[tool]}
        text = getattr(result.content[0], "text", "")
        if "it goes on" not in text:
            break
    raise TellerError(
        f"The server refused {tool}", text.rstrip("."), "Run the demo with --keep and read teller-mcp.log"
    )


_ADDED: Mapping[str, Sequence[str]] = {
    "import_trace": ("next", "left_out"),
    "list_slow_requests": ("next", "left_out", "captures", "fleet"),
    "run_rca": ("next", "left_out", "what_if"),
    "get_causal_slice": ("next", "left_out"),
    "compare": ("next", "left_out"),
}
"""What the server adds to the reports of the core."""


def _what_was_read(read: ImportReport) -> str:
    capture = read.captures[0]
    kept = sum(file.events_kept for file in capture.files)
    return (
        f"I read {len(capture.files)} files with {kept:,} events: {capture.requests} requests in {capture.steps} steps of "
        f"{capture.engine or 'an engine I do not know'}. Who took part in which step is {capture.mapping}."
    )


def _choose(table: SlowReport) -> tuple[int, int]:
    """The request to ask about, as a person would: the first that has a cause, else the slowest; and one that has none.

    Those that the service was warmed up with are nobody's: they are slow because it had just started.
    """
    request, name, verdict = (table.columns.index(column) for column in ("request", "engine_id", "verdict"))
    rows = [row for row in table.rows if row[name] not in WARMING]
    if not rows:
        raise TellerError("The demo", "its recording holds no request", "Run it with --keep and read server.log")
    slow = next((row for row in rows if row[verdict] == "cause"), rows[0])
    others = [row for row in rows if row[verdict] != "cause" and row is not slow] or [rows[-1]]
    return int(str(slow[request])), int(str(others[len(others) // 2][request]))


async def _reveal(client: "Client", truth: "Truth", request: int, answer: WhyReport, talk: Talk) -> None:
    """Tell what was really done. Until now nothing that answered could know it."""
    numbers = [int((await _call(client, None, "run_rca", request=name))["request"]) for name in truth.struck]
    named = answer.findings[0].cause if answer.verdict == "cause" and answer.findings else None
    talk.ask("And what was it really?")
    if truth.cause is None:
        talk.tell("Nothing was done to the service in this episode.")
    else:
        seconds = (truth.interval[1] - truth.interval[0]) / 1e9
        struck = ", ".join(str(number) for number in sorted(numbers)) or "none for long enough to count"
        talk.tell(
            f"The fault {truth.fault} ({truth.cause}), for {milliseconds(seconds * 1e3)}. Requests struck: {struck}."
        )
    expected = truth.cause if request in numbers else None
    verdict = "Right" if named == expected else "Wrong"
    hit = "was struck" if request in numbers else "was not struck"
    talk.tell(f"{verdict}: request {request} {hit}, and the answer was {named or answer.verdict.replace('_', ' ')}.")
