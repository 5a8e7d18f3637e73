"""Why a request was slow, and answers that are files: a page of HTML, a trace for a viewer, each whole or not there."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teller_core.cli.verbs import Verbs
from teller_core.data.whole import whole
from teller_core.errors import InputError

if TYPE_CHECKING:
    from teller_core.data.report import WhyReport
    from teller_core.data.report_timeline import WrittenReport

PICTURE = ".png"
"""The ending that asks for the timeline alone, as a picture."""


def why(loaded: Verbs, store: Any, given: argparse.Namespace) -> "WhyReport":
    """Why the request that was named was slow, by the model as well where that was asked for."""
    report = loaded.why(
        store,
        given.request,
        capture=given.capture,
        metric=given.metric,
        slo_ms=given.slo_ms,
        against=given.against,
    )
    if not given.model and given.weights is None:
        return report
    from teller_core.model.loading import Loader

    loader = Loader(given.weights, wait=True)
    return loaded.refine(store, report, loader, slo_ms=given.slo_ms, against=given.against)


def page(loaded: Verbs, store: Any, given: argparse.Namespace) -> "WrittenReport":
    """Write why a request was slow as one page that loads nothing; to a file of pictures, its timeline alone."""
    from teller_core.data.report_timeline import WrittenReport
    from teller_core.tell.report.page import report_page

    answer = why(loaded, store, given)
    beside = loaded.illustrated(store, answer)
    to = given.to or Path(f"report-{answer.request}.html")
    what = f"why request {answer.request} was slow"
    if to.suffix.lower() == PICTURE:
        from teller_core.tell.report.drawn import drawn
        from teller_core.tell.report.top import headline

        size = _write(to, [drawn(beside.timeline, f"Request {answer.request}: {headline(answer)}")])
        with_what = "what shows pictures"
    else:
        size = _write(to, [report_page(answer, beside.timeline, beside.cut, beside.why_no_cut).encode()])
        with_what = "a browser"
    return WrittenReport(file=str(to), bytes=size, what=what, open_with=with_what, timeline=beside.timeline)


def trace(loaded: Verbs, store: Any, target: str, given: argparse.Namespace) -> "WrittenReport":
    """Write the spans of a slice as a trace, none left out."""
    from teller_core.data.report_timeline import WrittenReport

    pieces, events = loaded.as_chrome(store, target, capture=given.capture, rank=given.rank)
    size = _write(given.chrome, (piece.encode() for piece in pieces))
    what = f"{events:,} spans of {target}"
    return WrittenReport(
        file=str(given.chrome), bytes=size, what=what, open_with="ui.perfetto.dev or chrome://tracing", events=events
    )


def _write(path: Path, pieces: Iterable[bytes]) -> int:
    """Put ``pieces`` into the file at ``path`` and return its bytes. What was there stays until all of it is written."""
    size = 0
    try:
        with whole(path) as file:
            for piece in pieces:
                size += file.write(piece)
    except OSError as error:
        named = path.name or str(path)
        raise InputError(f"{named!r}", f"it cannot be written ({error.strerror})", "Name another file") from None
    return size
