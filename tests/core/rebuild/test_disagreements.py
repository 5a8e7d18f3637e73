"""Calls that do not fit are told from those that may differ, and a rank that ends none any more from one that is slow."""

import pytest

from tests.core.ingest.nccl.flight_dumps import dump, entry
from tests.core.rebuild.recorded_ranks import judged, missing, recorded

GROUPS = {"0": [0, 1, 2]}


@pytest.mark.parametrize(
    ("usual", "odd", "expected"),
    [
        ({"name": "nccl:all_reduce"}, {"name": "nccl:_all_gather_base"}, True),
        ({"sizes": [[4]]}, {"sizes": [[5]]}, True),
        ({"dtype": "Float"}, {"dtype": "Half"}, True),
        ({"name": "nccl:all_to_all", "sizes": [[4]]}, {"name": "nccl:all_to_all", "sizes": [[5]]}, False),
        ({"name": "nccl:all_to_all", "dtype": "Float"}, {"name": "nccl:all_to_all", "dtype": "Half"}, True),
        ({"name": "gloo:gather", "sizes": []}, {"name": "gloo:gather", "sizes": [[5]]}, False),
    ],
)
def test_what_ranks_must_agree_on_depends_on_the_collective(usual: dict, odd: dict, expected: bool) -> None:  # type: ignore[type-arg]
    calls = {rank: [entry("0", 1, 1), entry("0", 2, 2, **(odd if rank == 1 else usual))] for rank in range(3)}
    _, table = judged(recorded({rank: dump(GROUPS, of) for rank, of in calls.items()}))
    assert (table.kind == ["other_call"]) is expected
    if expected:
        assert (table.rank.tolist(), table.sequence.tolist(), table.others.tolist()) == ([1], [2], [2])
        assert table.name == [odd.get("name", "nccl:all_reduce")]
        assert table.other_name == [usual.get("name", "nccl:all_reduce")]


def test_only_the_first_number_at_which_calls_differ_counts() -> None:
    ahead = [entry("0", sequence, sequence, sizes=[[sequence]]) for sequence in range(1, 9)]
    left_one_out = ahead[:3] + [entry("0", n, n, sizes=[[n + 1]]) for n in range(4, 8)]
    _, table = judged(recorded({0: dump(GROUPS, ahead), 1: dump(GROUPS, ahead), 2: dump(GROUPS, left_one_out)}))
    assert (table.rank.tolist(), table.sequence.tolist()) == ([2], [4])


@pytest.mark.parametrize(("behind", "expected"), [(6, [1]), (1, []), (0, [])])
def test_a_rank_stalls_where_it_called_all_and_ended_none_that_the_others_ended(
    behind: int, expected: list[int]
) -> None:
    status = {rank: {"0": (20, 18 if rank != 1 else 18 - behind)} for rank in range(3)}
    dumps = {
        rank: dump(GROUPS, [entry("0", n, n) for n in range(of["0"][1] + 1, 21)], of) for rank, of in status.items()
    }
    absent, table = judged(recorded(dumps))
    assert missing(absent) == []
    assert table.rank.tolist() == expected
    if expected:
        assert (table.kind, table.sequence.tolist(), table.until.tolist()) == (["not_ended"], [13], [18])
        assert table.others.tolist() == [2]


def test_a_dump_that_is_older_than_the_others_shows_no_stall() -> None:
    status = {0: {"0": (30, 30)}, 1: {"0": (20, 12)}, 2: {"0": (30, 30)}}
    early = [entry("0", n, n) for n in range(13, 21)]
    dumps = {rank: dump(GROUPS, early if rank == 1 else [], of) for rank, of in status.items()}
    _, table = judged(recorded(dumps))
    assert table.kind == []
