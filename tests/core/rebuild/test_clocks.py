"""The clocks of many ranks: what the bounds say holds for ranks whose clocks are known, and contradictions are not believed."""

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.capture import Collectives, Rank
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.clocks import DRIFT_PPM, bound_clocks
from teller_core.rebuild.collective_calls import Call, Key
from teller_core.rebuild.collective_kinds import Kind
from teller_core.rebuild.collectives import collective_tables
from teller_core.rebuild.engines import Place
from teller_core.rebuild.together import together

ALL_REDUCE, BROADCAST = Kind("all_reduce", True), Kind("broadcast", False)
BEGIN = 1_800_000_000 * 10**9
FAR = 10**12


class World:
    """Ranks with clocks that are off and run apart, and the collectives in which they met, by true time."""

    def __init__(self, seed: int, ranks: int, machines: int, longest_gap: int = 5 * 10**9) -> None:
        self.longest_gap = longest_gap
        self.rng = random.Random(seed)
        self.host = [self.rng.randrange(machines) for _ in range(ranks)]
        off = [0, *(self.rng.randrange(-(10**7), 10**7) for _ in range(machines))]
        rate = [self.rng.uniform(-0.5, 0.5) * DRIFT_PPM / 1e6 for _ in range(machines)]
        self.off, self.rate = [off[host] for host in self.host], [rate[host] for host in self.host]
        self.truth: list[dict[int, int]] = []
        self.met: dict[Key, list[Call]] = {}

    def clock(self, rank: int, true: int) -> int:
        return BEGIN + true + self.off[rank] + int(self.rate[rank] * true)

    def run(self, meetings: int) -> None:
        at = 0
        for k in range(meetings):
            members = sorted(self.rng.sample(range(len(self.host)), self.rng.randrange(2, len(self.host) + 1)))
            begun = {rank: at + self.rng.randrange(self.rng.choice([2_000, 3 * 10**6])) for rank in members}
            last = max(begun.values())
            ended = {rank: last + self.rng.randrange(100, 40_000) for rank in members}
            at = max(ended.values()) + self.rng.randrange(self.rng.choice([10**6, self.longest_gap]))
            self.truth.append(begun)
            key = Key("group", k, 0, len(members), "sequence")
            self.met[key] = [
                Call(r, -1, -1, start := self.clock(r, begun[r]), self.clock(r, ended[r]) - start, start, ALL_REDUCE, key=key)
                for r in members
            ]  # fmt: skip

    def ranks(self) -> list[Rank]:
        return [Rank(r, f"h{host}", 10 + r, "worker", None, -1) for r, host in enumerate(self.host)]

    def apart(self) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
        same = np.equal.outer(np.array(self.host), np.array(self.host))
        return np.where(same, 0, UNKNOWN).astype(np.int64)


def built(world: World) -> tuple[list[Rank], Counter[str], dict[Key, list[Call]]]:
    problems: Counter[str] = Counter()
    bare = world.ranks()
    places = [Place(rank.host, rank.pid) for rank in bare]
    told, _ = bound_clocks(bare, places, world.apart(), together(world.met), problems)
    return told, problems, world.met


@given(seed=st.integers(0, 2**32), ranks=st.integers(2, 7), machines=st.integers(1, 4), meetings=st.integers(1, 12))
def test_the_bound_of_every_rank_holds_the_truth_at_every_meeting(
    seed: int, ranks: int, machines: int, meetings: int
) -> None:
    world = World(seed, ranks, machines)
    world.run(meetings)
    told, problems, _ = built(world)
    assert not problems["clocks_contradict_collectives"]
    assert (told[0].shift, told[0].clock_error) == (0, 0)
    for begun in world.truth:
        for rank, true in begun.items():
            if told[rank].clock_error != UNKNOWN:
                wrong = world.clock(rank, true) + told[rank].shift - world.clock(0, true)
                assert abs(wrong) <= told[rank].clock_error + 2


@given(seed=st.integers(0, 2**32), ranks=st.integers(2, 7), machines=st.integers(1, 4), meetings=st.integers(1, 12))
def test_who_is_named_late_was_late_and_no_wait_is_told_of_who_did_not_wait(
    seed: int, ranks: int, machines: int, meetings: int
) -> None:
    world = World(seed, ranks, machines)
    world.run(meetings)
    problems: Counter[str] = Counter()
    bare = world.ranks()
    met = together(world.met)
    told, clocks = bound_clocks(bare, [Place(r.host, r.pid) for r in bare], world.apart(), met, problems)
    table, meet = collective_tables([call for of in world.met.values() for call in of], met, told, clocks)
    table.check()
    meet.check()
    for sequence, rank, wait, late in zip(
        table.sequence.tolist(), table.rank.tolist(), table.wait.tolist(), table.late.tolist(), strict=True
    ):
        begun = world.truth[sequence]
        assert late in (-1, max(begun, key=lambda r: begun[r]))
        assert wait != UNKNOWN or late != rank
        if wait not in (UNKNOWN, 0):
            assert begun[rank] < max(begun.values())


def test_shifts_meet_the_bounds_of_all_pairs_together() -> None:
    for seed in range(40):
        world = World(seed, 5, 5, longest_gap=10**6)
        world.run(8)
        told, _, met = built(world)
        for calls in met.values():
            for a in calls:
                for b in calls:
                    if UNKNOWN not in (told[a.rank].clock_error, told[b.rank].clock_error):
                        drift = 2 * (3 * 10**7) * DRIFT_PPM // 10**6
                        assert a.start + told[a.rank].shift <= b.start + b.dur + told[b.rank].shift + drift


def test_three_ranks_bound_each_other_tighter_than_two_do() -> None:
    def call(rank: int, k: int, start: int, dur: int) -> Call:
        key = Key("g", k, 0, 2, "sequence")
        return Call(rank, -1, -1, BEGIN + start, dur, BEGIN + start, ALL_REDUCE, key=key)

    pairs = [(call(0, 0, 1, 10_000), call(1, 0, 5, 10_000)), (call(0, 1, 30_001, 10), call(2, 1, 30_001, 10))]
    pairs.append((call(1, 2, 60_001, 10), call(2, 2, 60_001, 10)))
    ranks = [Rank(r, f"h{r}", r + 1, "worker", None, -1) for r in range(3)]
    apart = np.where(np.eye(3, dtype=np.bool_), 0, UNKNOWN).astype(np.int64)
    met = {Key("g", k, 0, 2, "sequence"): list(pair) for k, pair in enumerate(pairs)}
    told, _ = bound_clocks(ranks, [Place(r.host, r.pid) for r in ranks], apart, together(met), Counter())
    assert told[1].clock_error <= 25


def test_a_rank_whose_meetings_contradict_the_others_has_no_clock_and_is_counted() -> None:
    def call(rank: int, k: int, start: int) -> Call:
        return Call(rank, -1, -1, BEGIN + start, 101, BEGIN + start, ALL_REDUCE, key=Key("g", k, 0, 2, "sequence"))

    met = {
        Key("g", 0, 0, 2, "sequence"): [call(0, 0, 1), call(1, 0, 11)],
        Key("g", 1, 0, 2, "sequence"): [call(0, 1, FAR), call(2, 1, FAR)],
        Key("g", 2, 0, 2, "sequence"): [call(0, 2, 2 * FAR), call(2, 2, 2 * FAR + 10**9)],
    }
    ranks = [Rank(r, f"h{r}", r + 1, "worker", None, -1) for r in range(3)]
    apart = np.where(np.eye(3, dtype=np.bool_), 0, UNKNOWN).astype(np.int64)
    problems: Counter[str] = Counter()
    told, _ = bound_clocks(ranks, [Place(r.host, r.pid) for r in ranks], apart, together(met), problems)
    assert problems["clocks_contradict_collectives"] == 1
    assert [rank.clock_error == UNKNOWN for rank in told] == [False, False, True]


def test_a_broadcast_bounds_nothing() -> None:
    key = Key("g", 0, 0, 2, "sequence")
    calls = [Call(r, -1, -1, BEGIN + r * 5000, 101, BEGIN, BROADCAST, key=key) for r in range(2)]
    ranks = [Rank(r, f"h{r}", r + 1, "worker", None, -1) for r in range(2)]
    apart = np.where(np.eye(2, dtype=np.bool_), 0, UNKNOWN).astype(np.int64)
    told, _ = bound_clocks(ranks, [Place(r.host, r.pid) for r in ranks], apart, together({key: calls}), Counter())
    assert told[1].clock_error == UNKNOWN


def shared_clock(changed: Callable[[World], None], meetings: int = 300) -> tuple[list[Rank], Counter[str], Collectives]:
    """What is told of two ranks of one machine that met, of whose meetings ``changed`` makes others."""
    world = World(5, 2, 1)
    world.run(meetings)
    changed(world)
    problems: Counter[str] = Counter()
    bare, met = world.ranks(), together(world.met)
    told, clocks = bound_clocks(bare, [Place(r.host, r.pid) for r in bare], world.apart(), met, problems)
    table, _ = collective_tables([call for of in world.met.values() for call in of], met, told, clocks)
    return told, problems, table


def moved(world: World, k: int, ns: int) -> None:
    """The second rank's call of meeting ``k`` is another one, so much later."""
    key = Key("group", k, 0, 2, "sequence")
    one, other = world.met[key]
    world.met[key] = [one, other._replace(start=other.start + ns)]


@pytest.mark.parametrize("ns", [20 * 10**6, -20 * 10**6, 3_600 * 10**9])
def test_one_meeting_that_all_others_contradict_takes_no_clock_and_names_nobody(ns: int) -> None:
    told, problems, table = shared_clock(lambda world: moved(world, 150, ns))
    assert [rank.clock_error for rank in told] == [0, 0]
    assert problems == Counter(collectives_contradict_others=1, clocks_contradict_collectives=0)
    doubted = table.sequence == 150
    assert doubted.sum() == 2
    assert set(table.wait[doubted].tolist()) == {UNKNOWN} and set(table.late[doubted].tolist()) == {-1}
    assert set(table.late[~doubted].tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("what", "meetings"),
    [
        ("a clock that is set in the middle", 300),
        ("the last meeting", 300),
        ("one of few meetings", 60),
        ("four of three hundred", 300),
    ],
)
def test_a_clock_that_may_have_been_set_is_not_believed(what: str, meetings: int) -> None:
    which = {
        "a clock that is set in the middle": range(150, 300),
        "the last meeting": [299],
        "one of few meetings": [30],
        "four of three hundred": [60, 120, 180, 240],
    }[what]

    def changed(world: World) -> None:
        for k in which:
            moved(world, k, 20 * 10**6)

    told, problems, table = shared_clock(changed, meetings)
    assert UNKNOWN in [rank.clock_error for rank in told]
    assert problems["clocks_contradict_collectives"] == 1
    assert set(table.late.tolist()) == {-1}


def test_of_two_machines_as_well_one_meeting_that_all_others_contradict_is_left_out() -> None:
    world = World(7, 2, 2)
    world.host, world.off, world.rate = [0, 1], [0, 10**6], [0.0, 0.0]
    world.run(300)
    moved(world, 150, 10**9)
    told, problems, _ = built(world)
    assert problems["collectives_contradict_others"] == 1 and told[1].clock_error != UNKNOWN
    assert abs(told[1].shift + 10**6) <= told[1].clock_error
