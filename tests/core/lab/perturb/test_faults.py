"""A fault put into a replayed run has the consequences that it has in life: who waits, what stands still, what it costs."""

import numpy as np
import pytest

from teller_core.data.table import UNKNOWN
from teller_core.lab.perturb.altering import altered, as_it_is
from teller_core.lab.perturb.benign import Drawn, Spread
from teller_core.lab.perturb.blows import Blow, Struck, Target, launches, untouched
from teller_core.lab.perturb.episodes import Prepared, possible
from teller_core.lab.perturb.faults import FAULTS
from teller_core.lab.perturb.inserting import Added
from teller_core.lab.perturb.pieces import Piece
from teller_core.lab.perturb.runs import Run, recorded, replayed
from tests.core.lab.perturb.made import first

CALM = Spread(np.zeros(1), np.zeros(1))
RANKS = frozenset(FAULTS) - {"graph_miss"}


def same(piece: Piece) -> Drawn:
    """A draw in which everything takes what it took."""
    return Drawn(np.ones(len(piece.linked)), np.ones((2, *piece.low.shape)))


def strike(ready: Prepared, name: str, factor: float, step: int = 1) -> tuple[Struck, Run, Target]:
    chance = np.random.default_rng(3)
    target = FAULTS[name].choose(ready.given, chance)
    assert target is not None
    touched = np.arange(len(ready.given.piece.steps)) == step
    struck = FAULTS[name].strike(Blow(ready.given, target, factor, touched, chance))
    assert struck is not None
    return struck, replayed(struck, same(ready.given.piece)), target


def test_a_run_with_recorded_durations_is_the_recorded_one() -> None:
    piece = first().given.piece
    run = replayed(untouched(as_it_is(piece)), same(piece))
    assert np.array_equal(run.start, piece.linked.start)
    assert np.array_equal(run.end, piece.linked.end)


def test_what_takes_no_time_and_waits_for_nothing_changes_nothing() -> None:
    given = first().given
    rows = given.piece.linked
    call = int(launches(given.piece, 0).call[3])
    added = [Added(int(rows.stop[call]), int(rows.parent[call]), int(rows.end[call]), "new", call, "x", 4)]
    on = altered(given.capture, given.piece, 0, added)
    run = replayed(untouched(on), same(given.piece))
    assert np.array_equal(run.start[on.rows], rows.start)
    assert np.array_equal(run.end[on.rows], rows.end)
    assert on.piece.high.max() == given.piece.high.max() + 1


@pytest.mark.parametrize("name", sorted(RANKS))
def test_what_a_fault_does_not_reach_stays_as_it_was(name: str) -> None:
    """Steps before the struck one are those of the run without it, and so is the recording's every row."""
    ready = first()
    struck, run, _ = strike(ready, name, 4.0, step=2)
    took, was = run.took(), recorded(ready.given.piece).took()
    assert took[:2].tolist() == was[:2].tolist()
    for part in run.parts:
        part.tree.check()
    assert len(struck.on.rows) == len(ready.given.piece.linked)


@pytest.mark.parametrize("name", sorted(RANKS - {"nothing", "harmless_sync"}))
def test_the_struck_step_takes_longer_the_harder_it_is_struck(name: str) -> None:
    ready = first()
    was = recorded(ready.given.piece).took()[1]
    costs = [int(strike(ready, name, factor)[1].took()[1] - was) for factor in (1.05, 3.0, 10.0)]
    assert costs == sorted(costs)
    assert costs[-1] > 0.05 * was


def test_a_sync_in_the_middle_waits_for_the_device_and_lets_it_stand_still() -> None:
    ready = first("one")
    struck, run, target = strike(ready, "added_sync", 10.0)
    piece, new = struck.on.piece, struck.on.new
    given = launches(piece, 0)
    for row in new.tolist():
        before = given.work[piece.linked.start[given.call] < piece.linked.start[row]]
        assert run.end[row] >= run.end[before].max()
    assert target.names == ("cudaDeviceSynchronize",)
    assert run.took()[1] > recorded(ready.given.piece).took()[1]


def test_a_sync_behind_the_last_launch_costs_its_step_nothing() -> None:
    ready = first("one")
    _, run, _ = strike(ready, "harmless_sync", 10.0)
    assert run.took()[1] - recorded(ready.given.piece).took()[1] <= 10_000


def test_the_host_waits_in_the_call_until_a_pageable_copy_is_done() -> None:
    struck, run, target = strike(first("one"), "pageable_copy", 3.0)
    call, copy = struck.on.new[::2], struck.on.new[1::2]
    assert np.all(run.end[call] >= run.end[copy])
    assert np.all(run.start[copy] >= run.start[call])
    assert np.all(run.end[copy] > run.start[copy])
    assert target.names[-1].startswith("Memcpy HtoD (Pageable")


def test_ranks_wait_for_one_that_comes_late() -> None:
    ready = first()
    struck, run, target = strike(ready, "late_rank", 2.0)
    rows = ready.given.piece.linked
    mine = [row for row in rows.calls.row.tolist() if ready.given.piece.of_row[row] == 1]
    late = [row for row in mine if struck.on.piece.part(row) == target.part]
    others = [row for row in mine if row not in late]
    lasted = run.end - run.start
    assert min(lasted[others]) > max(lasted[late]) + 0.25 * ready.given.took[1]


def test_a_slow_link_makes_meetings_longer_on_all_ranks_alike() -> None:
    ready = first()
    _, run, _ = strike(ready, "slow_link", 5.0)
    rows = ready.given.piece.linked
    mine = [row for row in rows.calls.row.tolist() if ready.given.piece.of_row[row] == 1]
    grown = (run.end - run.start)[mine] - (rows.end - rows.start)[mine]
    assert grown.min() > 0
    assert np.ptp(grown) <= 1


def test_without_a_graph_every_kernel_is_launched_by_itself() -> None:
    ready = first("graphs")
    assert "graph_miss" in possible(ready)
    struck, run, _ = strike(ready, "graph_miss", 6.0)
    names = [name for part in run.parts for name in (part.tree.trace.names[int(k)] for k in part.tree.trace.name)]
    assert names.count("cudaLaunchKernel") == 12
    assert names.count("cudaGraphLaunch") == len(ready.given.piece.steps) - 1
    assert len(struck.on.new) == 12
    assert run.took()[1] > 1.3 * ready.given.took[1]
    kernels = struck.on.piece.linked.work
    lasted = run.end[kernels] - run.start[kernels]
    was = ready.given.piece.linked
    assert sorted(lasted) == sorted((was.end - was.start)[was.work])


def test_a_pause_is_told_where_it_was() -> None:
    ready = first()
    _, run, _ = strike(ready, "gc_pause", 3.0)
    ((part, begin, ns),) = run.stops
    own = run.piece.linked.host & (run.piece.linked.lane_part[run.piece.linked.lane] == part)
    assert ns == 2 * ready.given.took[1]
    inside = (run.start[own] > begin) & (run.start[own] < begin + ns)
    assert not inside.any()


def test_a_piece_without_ranks_that_meet_has_no_faults_between_ranks() -> None:
    assert not {"late_rank", "slow_link"} & set(possible(first("one")))
    assert set(possible(first())) == RANKS
    assert UNKNOWN not in recorded(first().given.piece).begin
