"""Which recordings of a capture are of one process."""

import pytest

from teller_core.data.capture import Rank, processes


@pytest.mark.parametrize(
    ("who", "same"),
    [
        ([("a", 1), ("a", 2), ("a", 1)], [0, 1, 0]),
        ([("a", 1), ("b", 1)], [0, 1]),
        ([("a", 0), ("a", 0), ("a", 3), ("a", 3)], [0, 1, 2, 2]),
        ([], []),
    ],
)
def test_recordings_are_of_one_process_where_host_and_pid_say_so_and_an_unknown_pid_says_nothing(
    who: list[tuple[str, int]], same: list[int]
) -> None:
    ranks = [Rank(at, host, pid, "worker", None, -1) for at, (host, pid) in enumerate(who)]
    assert processes(ranks).tolist() == same
