"""Sheets of real and simulated captures: they keep their contract, hold what was recorded, and name nobody."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.capture import Capture
from teller_core.data.sheet_parts import PARTS
from teller_core.data.sheets import CHARGES, NUMBERS, ZONES, Kind, Sheets, View, cause_ids
from teller_core.data.table import columns
from teller_core.data.trace import Layer
from teller_core.judge import front
from teller_core.judge.assess import assess
from teller_core.judge.prepare import Case, prepare
from teller_core.pipeline import import_paths
from teller_core.sheets import request_sheets, step_sheets, stored_case
from teller_core.store.store import Store
from tests.core.lab.evaluation.made import episode, profiled

REAL = Path(__file__).parents[1] / "data" / "captures" / "vllm_2node"


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Generator[Case]:
    with Store.open(tmp_path_factory.mktemp("sheets") / "t.db") as store:
        import_paths([REAL], store)
        yield stored_case(store, store.resolve(None))


@pytest.fixture(scope="module")
def sheets_of_two_nodes(two_nodes: Case) -> tuple[Sheets, Sheets]:
    return all_of(two_nodes)


def all_of(case: Case) -> tuple[Sheets, Sheets]:
    """The sheets of every request and of every step."""
    requests = request_sheets(case, np.arange(len(case.starts), dtype=np.int64))
    steps = step_sheets(case, np.arange(len(case.begin), dtype=np.int64))
    for sheets in (requests, steps):
        sheets.check()
    return requests, steps


def number(sheets: Sheets, name: str) -> np.ndarray:
    return sheets.numbers[:, NUMBERS.index(name)]


def clue(sheets: Sheets, cause: str) -> np.ndarray:
    """What the rule of ``cause`` says that it cost each."""
    return sheets.clues[:, cause_ids().index(cause), 0]


def texts(sheets: Sheets) -> str:
    return "\n".join(
        cell
        for part in PARTS
        for column in columns(getattr(sheets, part)).values()
        if isinstance(column, list)
        for cell in column
    )


def test_the_names_of_the_layout_are_those_of_what_is_measured() -> None:
    assert set(front.WAYS) == set(ZONES)
    assert set(CHARGES) == set(front.Zone.__dataclass_fields__) - {"low", "high"}


def test_a_real_capture_of_two_ranks_has_both_views_of_its_steps(
    two_nodes: Case, sheets_of_two_nodes: tuple[Sheets, Sheets]
) -> None:
    requests, steps = sheets_of_two_nodes
    assert len(requests) == len(two_nodes.starts) and set(requests.kind) == {Kind.REQUEST}
    vertical, horizontal = (steps.view == view for view in (View.VERTICAL, View.HORIZONTAL))
    assert vertical.sum() == len(two_nodes.begin) and horizontal.any() and set(steps.kind) == {Kind.STEP}
    across = np.repeat(steps.view, np.diff(steps.pieces_at)) == View.HORIZONTAL
    assert (steps.pieces.symbol[across] == -1).all() and (steps.pieces.symbol[~across] >= 0).all()
    assert set(steps.pieces.layer[across]) <= {Layer.COMMUNICATION} and across.any() and (~across).any()
    for at in np.flatnonzero(horizontal).tolist():
        assert len(set(steps.together.rank[steps.of("together", at)].tolist())) == 2
        assert (np.diff(steps.pieces.begin[steps.of("pieces", at)]) >= 0).all()
    assert requests.vocabulary == steps.vocabulary != ""
    assert (np.diff(requests.pieces_at)[requests.step >= 0] > 0).any()


def test_pieces_are_spans_of_the_step_with_their_own_names(
    two_nodes: Case, sheets_of_two_nodes: tuple[Sheets, Sheets]
) -> None:
    _, steps = sheets_of_two_nodes
    pieces, seen = steps.pieces, 0
    step = np.repeat(steps.step, np.diff(steps.pieces_at))
    for at in np.flatnonzero(pieces.symbol >= 0).tolist():
        rank = two_nodes.capture.ranks[int(pieces.rank[at])]
        work = two_nodes.capture.work
        [mine] = np.flatnonzero((work.step == step[at]) & (work.rank == pieces.rank[at]))
        assert work.row[mine] <= pieces.row[at] < work.row_stop[mine]
        assert rank.tree is not None
        assert rank.tree.trace.names[int(rank.tree.trace.name[int(pieces.row[at])])][:40] == pieces.name[at][:40]
        seen += 1
    assert seen > 10


def test_two_recorders_of_one_process_are_no_two_ranks() -> None:
    one = profiled(0, ranks=2).seen
    steps = np.arange(6, dtype=np.int64)
    apart = step_sheets(prepare(one.capture, one.assessment), steps)
    assert (apart.view == View.HORIZONTAL).sum() == 6 and (np.diff(apart.together_at) == 2).all()
    ranks = [replace(rank, host="h", pid=7) for rank in one.capture.ranks]
    same = step_sheets(prepare(replace(one.capture, ranks=ranks), one.assessment), steps)
    assert (same.view == View.VERTICAL).all() and not len(same.together.rank)
    for at in range(len(same)):
        assert len(set(same.pieces.rank[same.of("pieces", at)].tolist())) <= 1


def test_what_struck_shows_in_clues_and_facts_of_those_it_struck() -> None:
    one = episode(0, "gc")
    requests, steps = all_of(one.seen.case)
    struck = np.array([cause == "host.gc_pause" for cause in one.labels.request])
    healthy = np.array([cause == "" for cause in one.labels.request])
    cost = clue(requests, "host.gc_pause")
    assert struck.any() and np.median(cost[struck]) > 0.1 > np.max(cost[healthy], initial=0.0)
    for at in np.flatnonzero(struck).tolist():
        facts = requests.of("facts", at)
        assert "host.gc_pause" in requests.facts.cause[facts]
    told = requests.clues[struck, cause_ids().index("host.gc_pause"), 2]
    assert (told == 1).mean() > 0.8
    slow, calm = (one.labels.step == value for value in (1, 0))
    gone = number(steps, "pauses.gc")
    assert np.nanmedian(gone[slow]) > 0.3 and np.nanmedian(gone[calm]) == 0
    assert np.median(clue(steps, "host.gc_pause")[slow]) > 0.3
    assert np.nanmedian(number(steps, "over.over")[slow]) > np.log(2)


def test_a_slow_operator_is_a_suspect_and_lies_in_a_piece() -> None:
    one = profiled(0)
    slow = np.flatnonzero(one.labels.step == 1)
    steps = step_sheets(one.seen.case, slow.astype(np.int64))
    steps.check()
    for at in range(len(steps)):
        suspects = steps.of("suspects", at)
        names = steps.suspects.name[suspects]
        assert "aten::sdpa" in names
        piece = int(steps.suspects.piece[suspects][names.index("aten::sdpa")])
        assert piece >= 0 and steps.pieces.name[steps.of("pieces", at)][piece] == "aten::sdpa"


def test_a_sheet_of_a_lower_tier_has_less_in_it() -> None:
    whole = episode(0, "gc").seen.case.capture
    bare = prepare(replace(_without_steps(whole), tier=1), assess(_without_steps(whole)))
    rich, poor = (request_sheets(case, np.arange(6, dtype=np.int64)) for case in (episode(0, "gc").seen.case, bare))
    poor.check()
    assert (~np.isnan(poor.numbers)).sum() < (~np.isnan(rich.numbers)).sum()
    for name in ("times.took", "threads.waited", "over.over"):
        assert np.isnan(number(poor, name)).all()
    assert np.isfinite(number(rich, "times.took")).all()
    assert np.isnan(clue(poor, "host.gc_pause")).all() and (poor.step == -1).all()
    assert np.isfinite(number(poor, "request.e2e")).all()


def _without_steps(capture: Capture) -> Capture:
    none = np.empty(0, np.int64)
    from teller_core.data.table import take

    return replace(
        capture,
        steps=take(capture.steps, none),
        work=take(capture.work, none),
        participation=take(capture.participation, none),
        pauses=take(capture.pauses, none),
        samples=take(capture.samples, none),
    )


def test_nothing_that_somebody_called_a_capture_or_its_files_is_in_a_sheet(
    two_nodes: Case, sheets_of_two_nodes: tuple[Sheets, Sheets]
) -> None:
    said = "zebra-crossing"
    capture = two_nodes.capture
    files = [file._replace(name=f"{said}-{at}.log") for at, file in enumerate(capture.files)]
    renamed = prepare(replace(capture, name=said, id=said, files=files), two_nodes.assessment)
    for mine, other in zip(sheets_of_two_nodes, all_of(renamed), strict=True):
        assert said not in texts(other)
        assert texts(mine) == texts(other)
        np.testing.assert_array_equal(mine.numbers, other.numbers)


def test_a_hostile_name_is_made_safe_and_short() -> None:
    one = profiled(1)
    [rank] = one.seen.capture.ranks
    assert rank.tree is not None
    trace = rank.tree.trace
    evil = [name if name != "aten::sdpa" else "aten::sdpa\x1b[2J\u202e" + "x" * 999 for name in trace.names]
    tree = replace(rank.tree, trace=replace(trace, names=tuple(evil)))
    capture = replace(one.seen.capture, ranks=[replace(rank, tree=tree)])
    steps = step_sheets(prepare(capture, assess(capture)), np.flatnonzero(one.labels.step == 1).astype(np.int64)[:3])
    assert any("aten::sdpa" in name for name in steps.suspects.name)
    assert all(cell.isprintable() for cell in texts(steps).split("\n"))
    assert max(map(len, steps.suspects.name)) <= 200


def test_no_sheets_are_asked_of_nobody(two_nodes: Case) -> None:
    none = np.empty(0, np.int64)
    assert len(request_sheets(two_nodes, none)) == len(step_sheets(two_nodes, none)) == 0
