"""Real exports of Nsight Systems: every row counted as SQLite's own engine counts it, and as committed by name and number.

``python -m tests.core.ingest.nsight.test_nsight_corpus`` writes the committed numbers anew, from the engine alone.
"""

import sqlite3
import sys
import tomllib
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from teller_core.data.trace import kernel_totals
from teller_core.ingest.files.source import read_head
from teller_core.ingest.found import Place
from teller_core.ingest.nsight.reader import read, sniff
from teller_core.rebuild.nest import nest

TRACES = Path(__file__).parents[5] / "shared" / "traces" / "nsys"
EXPECTED = Path(__file__).parents[3] / "data" / "nsight_corpus_expect.toml"
FILES = sorted(TRACES.glob("*.sqlite"))
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
DEVICE = (KERNELS, *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("MEMCPY", "MEMSET", "SYNCHRONIZATION")))
HOST = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_OVERHEAD", "OSRT_API", "PROFILER_OVERHEAD")
NVTX = "NVTX_EVENTS"

pytestmark = pytest.mark.skipif(not FILES, reason="no real exports beside the checkout (../shared)")


def counts(path: Path) -> dict[str, Any]:
    """What the engine counts: all rows, those that are ranges by process, and kernels and their launches by process."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as base:

        def asked(query: str) -> list[Any]:
            return base.execute(query).fetchall()

        tables = {name for (name,) in asked("SELECT name FROM sqlite_master WHERE type = 'table'")}
        rows = {name: asked(f'SELECT count(*) FROM "{name}"')[0][0] for name in tables}
        spans: Counter[int] = Counter()
        for name in (*DEVICE, *HOST, NVTX):
            if rows.get(name):
                owner = "globalPid" if name in DEVICE else "globalTid >> 24 << 24"
                kept = "eventType IN (59, 60) OR eventType = 34" if name == NVTX else "1"
                spans.update(dict(asked(f'SELECT {owner}, count(*) FROM "{name}" WHERE {kept} GROUP BY 1')))
        kernels = asked(f'SELECT globalPid, count(*), sum("end" - start) FROM {KERNELS} GROUP BY 1')
        device = " UNION ALL ".join(f"SELECT globalPid, correlationId FROM {n}" for n in DEVICE[:3] if rows.get(n))
        launched = f"SELECT 1 FROM {HOST[0]} r WHERE r.globalTid >> 24 << 24 = d.globalPid AND r.correlationId = d.correlationId"
        alone = asked(f"SELECT globalPid, count(*) FROM ({device}) d WHERE NOT EXISTS ({launched}) GROUP BY 1")
        return {
            "rows": sum(rows.values()),
            "kept": spans.total(),
            "spans": {_pid(process): count for process, count in sorted(spans.items())},
            "kernels": {_pid(process): count for process, count, _ in kernels},
            "kernel_time_ns": {_pid(process): time for process, _, time in kernels},
            "unlaunched": {_pid(process): count for process, count in alone},
        }


def _pid(process: int) -> str:
    return str(process >> 24 & 0xFFFFFF)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_real_export_has_the_numbers_committed_for_it(path: Path) -> None:
    assert sniff(read_head(path))
    found = read(path, Place())
    trees = {str(trace.origin.pid): nest(trace) for trace in found.traces}
    for tree in trees.values():
        tree.check()
    totals = {pid: kernel_totals(tree.trace) for pid, tree in trees.items()}
    expected = tomllib.loads(EXPECTED.read_text())[path.name]
    assert found.events == found.kept + found.other.total() + found.problems.total() == expected["rows"]
    assert (found.kept, dict(found.problems)) == (expected["kept"], {})
    assert {pid: len(tree) for pid, tree in trees.items()} == expected["spans"]
    assert {pid: count for pid, (count, _) in totals.items()} == expected["kernels"]
    assert {pid: time for pid, (_, time) in totals.items()} == expected["kernel_time_ns"]
    assert {pid: tree.unlaunched for pid, tree in trees.items() if tree.unlaunched} == expected["unlaunched"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_committed_numbers_are_those_of_the_engine(path: Path) -> None:
    assert tomllib.loads(EXPECTED.read_text())[path.name] == counts(path)


def test_every_real_export_has_numbers_committed_for_it() -> None:
    assert set(tomllib.loads(EXPECTED.read_text())) == {path.name for path in FILES}


def _shown(value: Any) -> str:
    return "{ " + ", ".join(f"{k} = {v}" for k, v in value.items()) + " }" if isinstance(value, dict) else str(value)  # type: ignore[reportUnknownVariableType]


if __name__ == "__main__":
    text = "# Counted with SQLite's own engine: python -m tests.core.ingest.nsight.test_nsight_corpus\n"
    for one in FILES:
        text += f'\n["{one.name}"]\n' + "".join(f"{key} = {_shown(value)}\n" for key, value in counts(one).items())
    EXPECTED.write_text(text)
    sys.stdout.write(text)
