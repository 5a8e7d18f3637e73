"""Files and ranks of a capture on a page: a few by name, many by format."""

from typing import Any

from teller_core.tell.files_page import file_lines, ranks_of
from teller_core.tell.layout import Style

PLAIN = Style(width=100)


def test_many_files_are_told_together_and_no_event_is_lost_in_it(samples: Any) -> None:
    file = samples.capture().files[0].model_copy(update={"problems": {"no_dur": 2}})
    left = file.model_copy(update={"format": "", "problems": {"unknown_file": 1}})
    few = file_lines([file.model_copy(update={"name": f"rank{at}"}) for at in range(12)], PLAIN)
    assert [line.partition(":")[0] for line in few] == [f"  rank{at}" for at in range(12)]
    assert file_lines([*[file.model_copy(update={"name": f"rank{at}"}) for at in range(12)], left], PLAIN) == [
        "  rank0 and 11 files like it: kineto, 14,280 of 14,400 events kept, 96 flow; events without a",
        "    duration, dropped (24)",
        "  rank0.pt.trace.json.gz: not read (unknown file)",
    ]


def test_a_process_that_was_recorded_twice_is_one_rank(samples: Any) -> None:
    capture = samples.capture()
    twice = [capture.ranks[0], capture.ranks[0]]
    other = capture.ranks[0].model_copy(update={"rank": 1, "pid": 5})
    assert ranks_of(capture.model_copy(update={"ranks": twice})) == "1 rank in 2 recordings"
    assert ranks_of(capture.model_copy(update={"ranks": [capture.ranks[0], other]})) == "2 ranks"


def test_a_damaged_file_is_called_so_and_stands_apart(samples: Any) -> None:
    file = samples.capture().files[0].model_copy(update={"problems": {}})
    cut = file.model_copy(update={"name": "cut", "events_kept": 0, "problems": {"broken_file": 1}})
    assert file_lines([cut], PLAIN) == ["  cut: kineto, damaged or cut short: nothing of it is used"]
    assert file_lines([*[file] * 13, cut], PLAIN)[-1].startswith("  cut: kineto, damaged")
