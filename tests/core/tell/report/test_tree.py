"""A slice folds: every line is on the page, and unfolds below the nearest line that is less deep."""

from html.parser import HTMLParser

from hypothesis import example, given
from hypothesis import strategies as some

from teller_core.data.report import SliceLine, SliceReport
from teller_core.tell.report.tree import tree

DEEP = 3000
"""Levels, of a slice that was stored by somebody else."""


class Nested(HTMLParser):
    """Of each line's number, the number of the line that it unfolds below, None for none."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.above: dict[int, int | None] = {}
        self.open: list[int | None] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "details":
            self.open.append(None)

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not data.startswith("line "):
            return
        number = int(data.split()[1])
        if self.open and self.open[-1] is None:
            self.open[-1] = number  # its own summary
            outer = self.open[:-1]
        else:
            outer = self.open
        self.above[number] = outer[-1] if outer else None


def sliced(depths: list[int]) -> SliceReport:
    lines = [
        SliceLine(handle=f"0:{at}", depth=depth, text=f"line {at} ", layer="operator", start_ms=0, dur_ms=1, self_ms=1,
                  residual=None)
        for at, depth in enumerate(depths)
    ]  # fmt: skip
    return SliceReport(
        capture="c", step=1, request=None, rank=None, lines=lines, events=9, tokens=9, budget=9, cut=0, note=""
    )


@given(some.lists(some.integers(0, 6), min_size=1, max_size=40))
@example([0, 3, 2, 1])
@example([2, 1, 0])
@example([*range(DEEP)])
def test_every_line_stands_below_the_last_one_before_it_that_is_less_deep(depths: list[int]) -> None:
    expected = {
        at: next((before for before in range(at - 1, -1, -1) if depths[before] < depth), None)
        for at, depth in enumerate(depths)
    }
    assert Nested(tree(sliced(depths), "")).above == expected
