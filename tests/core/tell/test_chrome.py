"""A slice as a Chrome trace: our own reader, which takes nothing on trust, reads from it what was written."""

import json
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.capture import Rank
from teller_core.data.linked import StepSpans
from teller_core.data.tree import Tree
from teller_core.ingest.kineto.reader import read, sniff
from teller_core.tell.chrome import chrome_trace, events_in
from tests.core.store.made import tree_of

RANKS = [Rank(at, f"host-{at}", 70 + at, "worker", None, 0) for at in range(2)]


def written(path: Path, spans: list[StepSpans]) -> Path:
    path.write_text("".join(chrome_trace(spans, RANKS, "step 5")), "utf-8")
    return path


@pytest.mark.parametrize("shift", [0, 1_234_567, -999])
def test_what_is_written_is_read_again_to_the_nanosecond(tmp_path: Path, shift: int) -> None:
    spans = [StepSpans(at, 300 * at, tree_of(200, seed=at), at * shift) for at in range(2)]
    path = written(tmp_path / "slice.json", spans)
    assert sniff(path.read_bytes()[:4096])
    trace = read(path)
    assert len(trace) == 400 == events_in(spans) and trace.problems == {}
    handles = [json.loads(str(trace.args[arg]))["handle"] for arg in trace.arg.tolist()]
    for mine in spans:
        of_rank = [at for at, handle in enumerate(handles) if handle.startswith(f"{mine.rank}:")]
        order = np.array(sorted(of_rank, key=lambda at: int(handles[at].partition(":")[2])))
        own = mine.tree.trace
        assert np.array_equal(trace.start[order], own.start + mine.shift)
        assert np.array_equal(trace.dur[order], own.dur)
        assert [trace.names[i] for i in trace.name[order]] == [own.names[i] for i in own.name]
        assert np.array_equal(trace.layer[order], own.layer)
        assert np.array_equal(trace.link[order], own.link)
        assert np.array_equal(trace.on_device[order], own.on_device)


def test_a_name_that_breaks_json_or_a_terminal_is_text_and_nothing_else(tmp_path: Path, samples: type) -> None:
    tree = tree_of(9)
    names = [samples.hostile, '"}],"x":[{', "a\\u0000\ud800\n"]  # type: ignore[attr-defined]
    hostile = Tree(_renamed(tree, names), tree.parent, tree.stop)
    path = written(tmp_path / "slice.json", [StepSpans(0, 0, hostile, 0)])
    events = json.loads(path.read_text("utf-8"))["traceEvents"]
    assert [event["ph"] for event in events].count("X") == 9
    assert all(event["name"].isprintable() for event in events)


def _renamed(tree: Tree, names: list[str]):
    from dataclasses import replace

    return replace(tree.trace, names=names)


def test_processes_and_threads_have_names_and_an_order(tmp_path: Path) -> None:
    path = written(tmp_path / "slice.json", [StepSpans(1, 0, tree_of(9), 0)])
    said = [event for event in json.loads(path.read_text("utf-8"))["traceEvents"] if event["ph"] == "M"]
    assert {"name": "rank 1 worker host-1/71"} in [event["args"] for event in said]
    assert {"name": "stream stream 7"} in [event["args"] for event in said]


def test_nothing_to_write_is_a_trace_without_events(tmp_path: Path) -> None:
    assert json.loads(written(tmp_path / "none.json", []).read_text("utf-8"))["traceEvents"] == []
