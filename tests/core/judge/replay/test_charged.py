"""Waits are charged to who was late: cases made by hand, in which causes that look alike are sides of one case."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given

from teller_core.data.capture import Pauses
from teller_core.data.linked import Linked
from teller_core.judge.replay import Network, Waits, Whose, charged, critical, idled, network, times
from teller_core.judge.replay.network import names_of
from tests.core.judge.replay.cases import Case, cases
from tests.core.judge.replay.machine import Do, recorded, run
from tests.core.judge.replay.test_retime import programs
from tests.core.judge.service import MS, US

LEAST = 20 * US


def told(graph: Network, pauses: Pauses, found: Waits, verb: str) -> Iterator[str]:
    """A line a wait: who waited, how long, and to whom it is charged, the most first."""
    for k, (row, start, end) in enumerate(
        zip(found.row.tolist(), found.start.tolist(), found.end.tolist(), strict=True)
    ):
        parts: Counter[str] = Counter()
        for i in np.flatnonzero(found.wait == k).tolist():
            parts[name(graph.linked, pauses, int(found.whose[i]), int(found.of[i]))] += int(found.ns[i])
        charges = ", ".join(f"{who} {ns / US:g}" for who, ns in parts.most_common())
        lane = row - graph.nodes.lane_owner
        who = name(graph.linked, pauses, Whose.SILENCE if lane >= 0 else Whose.ROW, lane if lane >= 0 else row)
        yield f"{who} {verb} {(end - start) / US:g} us: {charges}"


def name(linked: Linked, pauses: Pauses, whose: int, of: int) -> str:
    if whose == Whose.ROW:
        return f"{names_of(linked, np.array([of], dtype=np.int32))[0]} of rank {linked.lane_part[linked.lane[of]]}"
    if whose == Whose.STOP:
        return f"{pauses.kind[of]} of {pauses.process[of]}"
    if whose == Whose.TRANSFER:
        return f"transfer of meeting {of}"
    if whose == Whose.SILENCE:
        return f"silence of rank {linked.lane_part[of]}"
    return Whose(whose).name.lower()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_each_wait_is_charged_to_who_was_late(case: Case) -> None:
    for causes, side in case.sides.items():
        linked, _, pauses = recorded(run(side.programs, {}, [MS] * len(side.programs)))
        graph = network(linked)
        waited = told(graph, pauses, charged(graph, least=LEAST), "waited")
        stood = told(graph, pauses, idled(graph, least=LEAST), "came after its stream had stood still for")
        assert [*waited, *stood] == side.expected, ", ".join(causes)


@given(programs())
def test_the_charges_of_a_wait_sum_to_it(made: tuple) -> None:
    linked, _, _ = recorded(run(made[0], {}, made[1]))
    graph = network(linked)
    found = charged(graph)
    assert np.array_equal(np.bincount(found.wait, found.ns, len(found.row)), found.end - found.start)
    assert (found.ns > 0).all()
    begun = found.start[found.wait] >= max(made[1])  # before that, a rank had recorded nothing yet
    assert not (found.whose[begun] == Whose.BEFORE).any()
    stood = idled(graph)
    assert np.array_equal(np.bincount(stood.wait, stood.ns, len(stood.row)), stood.end - stood.start)
    assert int((stood.end - stood.start).sum()) == int(times(graph).idle.sum())
    low, high = int(linked.start.min()), int(linked.end.max())
    whole = critical(graph, low, high)
    assert int(whole.ns.sum()) == high - low


def test_waits_are_found_by_when_they_end() -> None:
    do = [Do("op", "first", 10 * US), Do("launch", "gemm", 300 * US), Do("sync", "a", 0)]
    do += [Do("launch", "gemm", 200 * US), Do("sync", "b", 0)]
    graph = network(recorded(run([do], {}, [MS]))[0])
    both = charged(graph)
    assert len(both.row) == 2
    middle = int(both.end[0]) + 1
    assert charged(graph, high=middle).row.tolist() == both.row[:1].tolist()
    assert charged(graph, low=middle).row.tolist() == both.row[1:].tolist()
    assert charged(graph, least=250 * US).row.tolist() == both.row[:1].tolist()
