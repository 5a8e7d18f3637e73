"""Ranges that cross from one piece of a recording into the next are as whole as in one file."""

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teller_core.data.records import Recording
from teller_core.data.tree import Tree
from teller_core.ingest.files.planning import plan
from teller_core.ingest.reading import read_trees
from teller_core.rebuild.nest import nest

UNIX = 1_800_000_000_000_000_000
Row = tuple[str, str, int, int, str, str]


def _events(rng: random.Random, count: int) -> list[tuple[int, str]]:
    """(time, line) of nested ranges on two threads and two domains, and of ranges with ids; some never end, some never began."""
    depth: Counter[tuple[int, str]] = Counter()
    ids: list[int] = []
    found: list[tuple[int, str]] = []
    for time in range(1000, 1000 + 10 * count, 10):
        thread, domain = rng.choice([7, 8]), rng.choice(["", "NCCL"])
        kind = rng.choice("BBESFI")
        name, number = f"n{time}", 0
        if kind == "E":
            if not depth[thread, domain] and rng.random() < 0.7:
                continue
            depth[thread, domain] = max(0, depth[thread, domain] - 1)
            name = ""
        elif kind == "B":
            depth[thread, domain] += 1
        elif kind == "S":
            number, domain = time, ""
            ids.append(number)
        elif kind == "F":
            number, domain, name = ids.pop(rng.randrange(len(ids))) if ids else 5, "", ""
        found.append((time, f"{kind}\t{time}\t{thread}\t{domain}\t{name}\t0\t{time}\t{number}\n"))
    return found


def _anchor(time: int) -> str:
    return f"A\t{time}\t{UNIX + time}\t77\n"


def _read(folder: Path) -> tuple[Recording, list[Tree]]:
    reading = read_trees(plan([folder], together=True)[0], nest)
    for tree, (_, trace) in zip(reading.trees, reading.recording.traces, strict=True):
        assert tree.trace is trace
    return reading.recording, list(reading.trees)


def _rows(trees: list[Tree]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for trace in (tree.trace for tree in trees):
        for i in range(len(trace)):
            lane, arg = trace.lanes[int(trace.lane[i])], int(trace.arg[i])
            told = trace.args[arg] if arg >= 0 else ""
            name, category = trace.names[int(trace.name[i])], trace.categories[int(trace.category[i])]
            found[name, category, int(trace.start[i]), int(trace.dur[i]), lane.thread, told] += 1
    return found


def _counts(recording: Recording) -> Counter[str]:
    total: Counter[str] = Counter()
    for file in recording.files:
        assert file.events_in_file == file.events_kept + sum(file.events_other.values()) + sum(file.problems.values())
        total.update({**file.problems, "kept": file.events_kept, "range_end": file.events_other.get("range_end", 0)})
    return total


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.integers(0, 2**31), st.integers(1, 120), st.integers(2, 6))
def test_pieces_give_the_rows_and_the_counts_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, pieces: int
) -> None:
    rng = random.Random(seed)
    events = _events(rng, count)
    cuts = sorted(rng.randint(0, len(events)) for _ in range(pieces - 1))
    whole, cut = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("cut")
    (whole / "nvtx-77.tsv").write_text(_anchor(1000) + "".join(line for _, line in events))
    for number, (low, high) in enumerate(zip([0, *cuts], [*cuts, len(events)], strict=True)):
        text = "".join(line for _, line in events[low:high])
        (cut / f"nvtx-77-{number:04}.tsv").write_text(_anchor(1000 + number) + text)
    one, several = _read(whole), _read(cut)
    assert _rows(several[1]) == _rows(one[1])
    assert +_counts(several[0]) == +_counts(one[0])


def test_across_a_piece_that_is_gone_nothing_is_joined(tmp_path: Path) -> None:
    begin, end = "B\t2000\t7\t\ta\t0\t0\t0\n", "E\t9000\t7\t\t\t0\t0\t0\n"
    (tmp_path / "nvtx-77-0001.tsv").write_text(_anchor(1000) + begin)
    (tmp_path / "nvtx-77-0003.tsv").write_text(_anchor(8000) + end)
    recording, trees = _read(tmp_path)
    assert not trees
    assert +_counts(recording) == {"unmatched_push": 1, "unmatched_pop": 1}


def test_pieces_of_two_processes_are_not_joined(tmp_path: Path) -> None:
    (tmp_path / "nvtx-77-0001.tsv").write_text(_anchor(1000) + "B\t2000\t7\t\ta\t0\t0\t0\n")
    (tmp_path / "nvtx-78-0002.tsv").write_text(_anchor(8000).replace("77", "78") + "E\t9000\t7\t\t\t0\t0\t0\n")
    assert not _read(tmp_path)[1]
