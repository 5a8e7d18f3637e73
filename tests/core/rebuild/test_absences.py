"""Ranks that did not come to a collective are told from who came, in any window that the recorders kept."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.spelled import ranks_of, spelled
from teller_core.data.table import UNKNOWN
from teller_core.judge.first_causes import firsts
from tests.core.ingest.nccl.flight_dumps import MS, START, dump, entry
from tests.core.rebuild.recorded_ranks import judged, missing, recorded

TP = {"tp": [0, 1]}


def ended(group: str, upto: int) -> list[dict[str, Any]]:
    return [entry(group, sequence, sequence, done=True) for sequence in range(1, upto + 1)]


def test_the_rank_that_others_wait_for_is_named_with_the_collective_and_who_waits() -> None:
    groups = {"0": [0, 1, 2, 3]}
    waits = [*ended("0", 3), entry("0", 4, 50, "nccl:all_to_all", sizes=[[2, 8]])]
    dumps = {rank: dump(groups, waits if rank != 2 else ended("0", 3)) for rank in range(4)}
    table, _ = judged(recorded(dumps))
    assert missing(table) == [(2, "0", 4, "0-1,3", True)]
    assert (table.name, table.elements.tolist(), table.dtype) == (["nccl:all_to_all"], [16], ["BFloat16"])
    assert table.since.tolist() == [START + 50 * MS]
    assert table.last_seen.tolist() == [START + 3 * MS]
    assert table.waiting.tolist() == [3]


def test_a_rank_whose_dump_holds_nothing_is_missing_by_its_status() -> None:
    groups = {"0": [0, 1], "4": [0, 1]}
    waiting = dump(groups, [entry("4", 90, 5, pg_id=1)], {"0": (7, 7), "1": (90, 89)})
    nothing = dump(groups, [], {"0": (7, 7), "1": (89, 89)})
    table, _ = judged(recorded({0: waiting, 1: nothing}))
    assert missing(table) == [(1, "4", 90, "0", True)]
    assert table.last_seen.tolist() == [UNKNOWN]


def test_an_entry_that_the_ring_has_forgotten_is_no_absence() -> None:
    groups = {"0": [0, 1]}
    long, short = ended("0", 9), [*ended("0", 9)[6:]]
    table, other = judged(recorded({0: dump(groups, long), 1: dump(groups, short)}))
    assert missing(table) == []
    assert other.kind == []


def test_a_rank_that_may_have_forgotten_the_call_is_not_named_for_certain() -> None:
    groups = {"0": [0, 1], "9": [0, 1]}
    busy = [entry("9", sequence, 100 + sequence, done=True, pg_id=1) for sequence in range(5)]
    waiting = [entry("0", 4, 50), *busy]
    table, _ = judged(recorded({0: dump(groups, waiting), 1: dump(groups, busy)}))
    assert missing(table) == [(1, "0", 4, "0", False)]


def test_a_rank_without_a_dump_is_suspected_where_all_others_came() -> None:
    groups = {"0": [0, 1, 2]}
    came = [*ended("0", 1), entry("0", 2, 9)]
    table, _ = judged(recorded({0: dump(groups, came), 1: dump(groups, came)}))
    assert missing(table) == [(2, "0", 2, "0-1", False)]
    table, _ = judged(recorded({0: dump(groups, came), 1: dump(groups, ended("0", 1))}))
    assert missing(table) == [(1, "0", 2, "0", True)]


def test_ranks_are_not_suspected_for_dumps_that_nobody_collected() -> None:
    groups = {"0": list(range(16))}
    pending = dump(groups, [*ended("0", 1), entry("0", 2, 9)])
    assert missing(judged(recorded({3: pending}))[0]) == []
    assert missing(judged(recorded(dict.fromkeys(range(8), pending)))[0]) == []
    assert len(missing(judged(recorded(dict.fromkeys(range(9), pending)))[0])) == 7


def test_a_dump_of_fifty_thousand_ranks_and_many_calls_takes_no_longer_than_reading_it() -> None:
    groups = {str(group): list(range(50_000)) for group in range(10)}
    calls = [entry(str(n % 10), n, n) for n in range(20_000)]
    begun = time.process_time()
    absent, other = judged(recorded({3: dump(groups, calls)}))
    assert (missing(absent), other.kind) == ([], [])
    assert time.process_time() - begun < 100


def test_dumps_that_were_written_one_after_the_other_name_nobody() -> None:
    groups = {"0": [0, 1]}
    early = [*ended("0", 3), entry("0", 4, 4)]
    table, _ = judged(recorded({0: dump(groups, early), 1: dump(groups, ended("0", 40))}))
    assert missing(table) == []
    table, _ = judged(
        recorded({0: dump(groups, ended("0", 3)), 1: dump(groups, [*ended("0", 40), entry("0", 41, 41)])})
    )
    assert [certain for *_, certain in missing(table)] == [False]


def test_a_broadcast_that_its_root_has_left_still_waits_for_the_others() -> None:
    groups = {"0": [0, 1, 2]}
    root = [*ended("0", 1), entry("0", 2, 2, "nccl:broadcast", done=True)]
    waits = [*ended("0", 1), entry("0", 2, 2, "nccl:broadcast")]
    table, _ = judged(recorded({0: dump(groups, root), 1: dump(groups, waits), 2: dump(groups, ended("0", 1))}))
    assert missing(table) == [(2, "0", 2, "1", True)]


def test_a_rank_that_is_missing_because_it_waits_elsewhere_is_not_the_first_cause() -> None:
    groups = {"a": [0, 1], "b": [1, 2]}
    dumps = {
        0: dump({"a": [0, 1]}, [*ended("a", 1), entry("a", 2, 10)]),
        1: dump(groups, [*ended("a", 1), *ended("b", 1), entry("b", 2, 8)]),
        2: dump({"b": [1, 2]}, ended("b", 1)),
    }
    table, _ = judged(recorded(dumps))
    assert missing(table) == [(2, "b", 2, "1", True), (1, "a", 2, "0", True)]
    found = firsts(table)
    assert list(found.rows) == [2]
    assert found.held(2) == {0, 1}
    assert found.circles == []


def test_ranks_that_wait_for_one_another_are_a_circle() -> None:
    groups, third = {"a": [0, 1], "b": [0, 1]}, {"c": [1, 2]}
    both = [*ended("a", 1), *ended("b", 1)]
    dumps = {
        0: dump(groups, [*both, entry("a", 2, 10)]),
        1: dump(groups | third, [*both, *ended("c", 1), entry("b", 2, 11)]),
        2: dump(third, [*ended("c", 1), entry("c", 2, 12)]),
    }
    table, _ = judged(recorded(dumps))
    found = firsts(table)
    assert found.rows == {}
    ((first, second),) = found.circles
    assert [(first[0], table.group[first[1]]), (second[0], table.group[second[1]])] == [(0, "a"), (1, "b")]


def test_a_sender_that_never_sent_is_missing_to_the_receiver() -> None:
    groups = {"pp": [4, 7, 9]}
    moved = [entry("pp", 1, 1, "nccl:recv 1<-0", done=True), entry("pp", 2, 20, "nccl:recv 1<-0")]
    sent = [entry("pp", 1, 1, "nccl:send 0->1", done=True)]
    table, _ = judged(recorded({7: dump(groups, moved), 4: dump(groups, sent)}))
    assert missing(table) == [(4, "pp", 2, "7", True)]
    assert table.point_to_point.tolist() == [1]
    sent += [entry("pp", 2, 19, "nccl:send 0->1")]
    assert missing(judged(recorded({7: dump(groups, moved), 4: dump(groups, sent)}))[0]) == []


def test_two_processes_that_say_they_are_one_rank_are_not_judged() -> None:
    one, other = (recorded({0: dump(TP, [entry("tp", 1, 1)])}) for _ in range(2))
    one.collectives += [fact._replace(process=fact.process._replace(pid=9)) for fact in other.collectives]
    problems: Counter[str] = Counter()
    table, _ = judged(one, problems)
    assert missing(table) == []
    assert problems["ranks_told_twice"] == 1


def test_what_nccl_itself_recorded_is_not_compared_with_its_numbers_which_count_each_kind_apart() -> None:
    recording = recorded({rank: dump(TP, [entry("tp", 1, 1, done=True)]) for rank in (0, 1)})
    ended = [fact._replace(size=2, members=()) for fact in recording.collectives]
    recording.collectives += [ended[0]._replace(name="AllGather"), ended[1]._replace(name="AllReduce")]
    absent, other = judged(recording)
    assert missing(absent) == []
    assert other.kind == []


class Job(NamedTuple):
    """A service's collectives in the order in which all ranks call them, and before which of its own each dead rank ends."""

    groups: Sequence[frozenset[int]]
    order: Sequence[int]
    dead: dict[int, int]
    ahead: int
    kept: int
    only_active: bool


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    ranks = draw(st.integers(2, 6))
    groups = draw(st.lists(st.frozensets(st.integers(0, ranks - 1), min_size=2), min_size=1, max_size=4, unique=True))
    order = draw(st.lists(st.integers(0, len(groups) - 1), min_size=1, max_size=25))
    dead = draw(st.dictionaries(st.integers(0, ranks - 1), st.integers(0, 8), max_size=2))
    return Job(groups, order, dead, draw(st.integers(0, 3)), draw(st.integers(4, 30)), draw(st.booleans()))


class Played(NamedTuple):
    dumps: dict[int, dict[str, Any]]
    guilty: set[int]


def play(job: Job) -> Played:
    """Run the job until nothing moves: a rank calls ahead of at most ``ahead`` collectives of its own that have not ended."""
    mine = {
        rank: [at for at, group in enumerate(job.order) if rank in job.groups[group]]
        for rank in {rank for group in job.groups for rank in group}
    }
    called: dict[int, int] = dict.fromkeys(mine, 0)
    ended: dict[int, int] = dict.fromkeys(mine, 0)
    moved = True
    while moved:
        moved = False
        for rank, own in mine.items():
            stop = min(len(own), job.dead.get(rank, len(own)), ended[rank] + job.ahead + 1)
            moved |= called[rank] < stop
            called[rank] = max(called[rank], stop)
        for rank, own in mine.items():
            while ended[rank] < called[rank] and _all_came(job, mine, called, own[ended[rank]]):
                ended[rank] += 1
                moved = True
    waiting = {at for rank, own in mine.items() for at in own[ended[rank] : called[rank]]}
    guilty = {
        rank
        for at in waiting
        for rank in job.groups[job.order[at]]
        if at not in mine[rank][: called[rank]] and called[rank] == ended[rank]
    }
    return Played({rank: _dump(job, rank, own, called[rank], ended[rank]) for rank, own in mine.items()}, guilty)


def _all_came(job: Job, mine: dict[int, list[int]], called: dict[int, int], at: int) -> bool:
    return all(at in mine[rank][: called[rank]] for rank in job.groups[job.order[at]])


def _dump(job: Job, rank: int, own: list[int], called: int, ended: int) -> dict[str, Any]:
    numbers = {at: job.order[: at + 1].count(job.order[at]) for at in own}
    groups = {str(g): sorted(members) for g, members in enumerate(job.groups) if rank in members}
    entries = [
        entry(str(job.order[at]), numbers[at], at, pg_id=sorted(map(int, groups)).index(job.order[at]), done=k < ended)
        for k, at in enumerate(own[:called])
    ]
    status = {
        str(local): tuple(sum(job.order[at] == int(g) for at in own[:far]) for far in (called, ended))
        for local, g in enumerate(sorted(groups, key=int))
    }
    kept = [each for each in entries if not each["retired"]] if job.only_active else entries[-job.kept :]
    return dump(groups, kept, status)  # type: ignore[arg-type]


@given(jobs())
def test_the_ranks_that_stopped_are_the_first_causes_and_nobody_else(job: Job) -> None:
    played = play(job)
    table, other = judged(recorded(played.dumps))
    assert set(firsts(table).rows) == played.guilty
    assert firsts(table).circles == []
    assert played.guilty <= set(job.dead)
    assert "other_call" not in other.kind


@given(st.sets(st.integers(0, 40)))
def test_lists_of_ranks_come_back_from_their_text(ranks: set[int]) -> None:
    assert ranks_of(spelled(ranks)) == ranks
