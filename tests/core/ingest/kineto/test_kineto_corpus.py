"""Real traces: read, nested and counted as the standard library does it, and as committed by name and number.

``python -m tests.core.ingest.kineto.test_kineto_corpus`` writes the committed numbers anew, from the standard library alone.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from teller_core.data.trace import kernel_totals
from teller_core.ingest.files.source import read_head
from teller_core.ingest.kineto.reader import read, sniff
from teller_core.rebuild.nest import nest
from tests.core.ingest.kineto.kineto_oracle import Told, check, expand, rows_of, told
from tests.core.rebuild.tree_oracle import Span, nested

CORPUS = Path(__file__).parents[5] / "shared"
EXPECTED = Path(__file__).parents[3] / "data" / "kineto_corpus_expect.toml"
TRACES, CAPTURES = CORPUS / "traces" / "kineto", CORPUS / "captures"
FILES = sorted(TRACES.glob("**/*.json.gz"))
RECORDED = sorted([*CAPTURES.glob("**/torch-*.json.gz"), *CAPTURES.glob("**/*.pt.trace.json.gz")])

pytestmark = pytest.mark.skipif(not FILES, reason="no real traces beside the checkout (../shared)")


def name_of(path: Path) -> str:
    return str(path.relative_to(TRACES)).removesuffix(".gz")


def counts(found: Told) -> dict[str, Any]:
    """What is committed of a file."""
    kernels = [row.dur for row in found.rows if row.category.lower() in ("kernel", "concurrent_kernel")]
    return {
        "events_in_file": found.records,
        "events_kept": len(found.rows),
        "kernels": len(kernels),
        "kernel_time_ns": sum(kernels),
        "events_other": found.other,
        "problems": found.problems,
    }


@pytest.mark.slow
@pytest.mark.parametrize("path", [*FILES, *RECORDED], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_trace_reads_and_nests_as_its_definition_says(path: Path) -> None:
    assert sniff(read_head(path))
    trace = read(path)
    check(trace, expand(path))
    rows = rows_of(trace)
    tree, expected = nest(trace), nested([Span(r.start, r.dur, r.lane, r.layer, r.link) for r in rows])
    tree.check()
    assert rows_of(tree.trace) == [rows[i] for i in expected.rows]
    assert tree.parent.tolist() == expected.parent
    assert (tree.crossings, tree.unlaunched) == (expected.crossings, expected.unlaunched)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_real_trace_has_the_numbers_committed_for_it(path: Path) -> None:
    trace = read(path)
    kernels, kernel_time = kernel_totals(trace)
    assert {
        "events_in_file": trace.events_in_file,
        "events_kept": len(trace),
        "kernels": kernels,
        "kernel_time_ns": kernel_time,
        "events_other": trace.events_other,
        "problems": trace.problems,
    } == tomllib.loads(EXPECTED.read_text())[name_of(path)]


def test_every_real_trace_has_numbers_committed_for_it() -> None:
    assert set(tomllib.loads(EXPECTED.read_text())) == {name_of(path) for path in FILES}


def _table(counted: dict[str, int]) -> str:
    return "{ " + ", ".join(f"{key} = {counted[key]}" for key in sorted(counted)) + " }" if counted else "{}"


def main() -> None:
    """Write what the standard library counts in every real trace."""
    lines = ["# Counted with the standard library: python -m tests.core.ingest.kineto.test_kineto_corpus"]
    for path in FILES:
        lines.append(f'\n["{name_of(path)}"]')
        for key, value in counts(told(expand(path))).items():
            lines.append(f"{key} = {_table(value) if isinstance(value, dict) else value}")
    EXPECTED.write_text("\n".join(lines) + "\n")
    sys.stderr.write(f"{len(FILES)} traces\n")


if __name__ == "__main__":
    main()
