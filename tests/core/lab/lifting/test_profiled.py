"""Profiled steps without their fault: what replay says of programs of two ranks, against the machine that ran them."""

import numpy as np
import pytest

from teller_core.judge.replay import network
from teller_core.lab.lifting.profiled import Owned, Usual, predicted
from tests.core.judge.replay.machine import Do, Program, recorded, run
from tests.core.judge.service import MS, US

FIRST, LAST, TOKEN = Do("op", "first", 100 * US), Do("op", "last", 100 * US), Do("sync", "token", 0)
MEET = Do("meet", "ncclDevKernel_AllReduce", 50 * US)
GEMM = Do("launch", "gemm", 600 * US)


def seen(programs: list[Program]) -> tuple[Owned, int]:
    """A step of ``programs`` as replay sees it, by the names of what ran, and how long it lasted."""
    linked, _, _ = recorded(run(programs, {}, [MS] * len(programs)))
    keys: dict[tuple[str, ...], list[int]] = {}
    for part, low in zip(linked.parts, linked.first.tolist(), strict=False):
        for row, name in enumerate(part.tree.trace.name.tolist()):
            keys.setdefault((str(part.rank), str(part.tree.trace.names[name])), []).append(low + row)
    lasted = int(linked.end.max() - linked.start.min())
    return Owned(network(linked), {key: np.array(rows, dtype=np.int64) for key, rows in keys.items()}), lasted


HEALTHY: list[Program] = [(FIRST, GEMM, MEET, TOKEN, LAST)] * 2


@pytest.mark.parametrize(
    "struck",
    [
        [HEALTHY[0], (FIRST, Do("op", "aten::sort", 3 * MS), GEMM, MEET, TOKEN, LAST)],
        [HEALTHY[0], (FIRST, Do("launch", "gemm", 4 * MS), MEET, TOKEN, LAST)],
        [(Do("op", "first", 2 * MS), GEMM, MEET, TOKEN, LAST), HEALTHY[1]],
    ],
    ids=["an operator more", "a slow kernel", "a slow operator"],
)
def test_a_step_without_what_took_longer_than_usual_ends_as_the_machine_ends(struck: list[Program]) -> None:
    usual = Usual()
    healthy, short = seen(HEALTHY)
    for _ in range(3):
        usual.learn(healthy, short, short)
    step, lasted = seen(struck)
    ours, own, scaled = predicted(step, usual, lasted, short)
    assert ours == pytest.approx(lasted - short, rel=0.02, abs=20 * US)
    assert own > 0 and scaled > 0


def test_a_healthy_step_saves_nothing() -> None:
    usual = Usual()
    healthy, lasted = seen(HEALTHY)
    usual.learn(healthy, lasted, lasted)
    assert predicted(healthy, usual, lasted, lasted) == pytest.approx((0.0, 0.0, 0.0), abs=1.0)


def test_what_is_usual_grows_with_the_work_of_the_step() -> None:
    usual = Usual()
    healthy, lasted = seen(HEALTHY)
    usual.learn(healthy, lasted, lasted)
    key = ("0", "gemm")
    assert usual.of(key, 2 * lasted) == pytest.approx(2 * healthy.total(key))
    assert usual.of(("0", "aten::sort"), lasted) == 0.0


def test_what_a_step_took_before_its_spans_is_taken_off_as_it_is() -> None:
    usual = Usual()
    healthy, lasted = seen(HEALTHY)
    usual.learn(healthy, lasted, lasted)
    assert predicted(healthy, usual, lasted + 4 * MS, lasted)[:2] == pytest.approx((4 * MS, 4 * MS), abs=1.0)
