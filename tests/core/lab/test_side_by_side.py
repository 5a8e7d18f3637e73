"""Work side by side comes to what it comes to one after the other, and tells how it failed."""

import os
import signal
import threading
from functools import partial

import pytest

from teller_core.errors import InputError, OutOfRoom
from teller_core.lab.side_by_side import side_by_side


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def test_results_stand_in_order_and_come_from_other_processes() -> None:
    parts = [partial(square, at) for at in range(7)]
    found = side_by_side(parts, 3)
    assert [value for value, _ in found] == [at * at for at in range(7)]
    assert len({pid for _, pid in found} - {os.getpid()}) == 7


@pytest.mark.parametrize(("parts", "at_once"), [(1, 4), (4, 1)])
def test_one_part_or_one_processor_needs_no_other_process(parts: int, at_once: int) -> None:
    assert {pid for _, pid in side_by_side([partial(square, at) for at in range(parts)], at_once)} == {os.getpid()}


def test_beside_a_thread_nothing_is_forked() -> None:
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        assert {pid for _, pid in side_by_side([partial(square, at) for at in range(3)], 2)} == {os.getpid()}
    finally:
        done.set()
        other.join()


def refused(why: str) -> None:
    raise InputError("The part", why, "Give another one")


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def failed() -> None:
    raise ZeroDivisionError


def test_what_a_part_refuses_is_refused() -> None:
    with pytest.raises(InputError, match="it is odd"):
        side_by_side([partial(square, 1), partial(refused, "it is odd")], 2)


def test_a_part_that_is_killed_or_fails_is_told() -> None:
    with pytest.raises(OutOfRoom, match="was killed"):
        side_by_side([killed, partial(square, 1)], 2)
    with pytest.raises(RuntimeError, match="failed"):
        side_by_side([failed, partial(square, 1)], 2)
