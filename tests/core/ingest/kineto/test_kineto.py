"""Each folder of tests/data/kineto: a trace, and what it says once it is read and nested.

Write a new expectation with ``python -m tests.core.ingest.kineto.test_kineto CASE`` and read it before it is committed.
"""

import sys
from pathlib import Path

import pytest

from teller_core.data.trace import Layer, kernel_totals
from teller_core.ingest.kineto.reader import read
from teller_core.rebuild.nest import nest
from tests.core.ingest.kineto.kineto_oracle import check

CASES = sorted((Path(__file__).parents[3] / "data" / "kineto").iterdir())


def shown(path: Path) -> str:
    """The tree of a file as text: depth, times in ns, layer, lane, category, name, correlation, arguments; then the rest."""
    tree = nest(read(path))
    tree.check()
    trace, depth = tree.trace, tree.depth().tolist()
    lines: list[str] = []
    for row in range(len(tree)):
        lane = trace.lanes[int(trace.lane[row])]
        parts = [
            "  " * depth[row] + repr(trace.names[int(trace.name[row])]),
            f"{trace.start[row]} +{trace.dur[row]}",
            Layer(int(trace.layer[row])).name.lower(),
            f"{'device' if lane.device else 'host'} {lane.process!r} {lane.thread!r}",
            repr(trace.categories[int(trace.category[row])]),
        ]
        parts += [f"link {trace.link[row]}"] if trace.link[row] >= 0 else []
        parts += [trace.args[int(trace.arg[row])]] if trace.arg[row] >= 0 else []
        lines.append(" | ".join(parts))
    counts = {
        "records": trace.events_in_file,
        "kept": len(trace),
        "other": trace.events_other,
        "problems": trace.problems,
    }
    counts |= {"crossings": tree.crossings, "unlaunched": tree.unlaunched, "kernels": kernel_totals(trace)}
    return "\n".join([*lines, "", *(f"{k}: {v}" for k, v in counts.items()), str(trace.origin)]) + "\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_trace_says_what_is_expected_of_it(case: Path) -> None:
    assert shown(case / "input.json") == (case / "expect.txt").read_text()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_trace_reads_as_the_standard_library_reads_it(case: Path) -> None:
    check(read(case / "input.json"), (case / "input.json").read_bytes())


if __name__ == "__main__":
    for folder in CASES:
        if folder.name in sys.argv[1:]:
            (folder / "expect.txt").write_text(shown(folder / "input.json"))
