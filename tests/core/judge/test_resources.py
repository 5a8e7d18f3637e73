"""What steps spent their time on: it sums to the time of the steps, and what no profile saw stays unexplained."""

from dataclasses import replace

import numpy as np

from teller_core.data.capture import Rank
from teller_core.data.parts import RESOURCES
from teller_core.data.report import Part
from teller_core.data.steps import Mapping, Participation, Role, StepWork
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Layer
from teller_core.judge.assess import assess
from teller_core.judge.prepare import prepare
from teller_core.judge.scene import scene
from tests.core.judge.service import MS, Rows, Work, capture, requests_table, service, steps_table


def of(parts: list[Part]) -> dict[str, int | None]:
    return {part.part: part.ns for part in parts}


def served(count: int) -> Participation:
    return Participation(
        step=np.arange(count, dtype=np.int32),
        request=np.zeros(count, np.int32),
        tokens=np.ones(count, np.int32),
        recomputed=np.zeros(count, np.int32),
        role=np.full(count, Role.DECODE, np.uint8),
        mapping=np.full(count, Mapping.RECORDED, np.uint8),
        confidence=np.ones(count),
    )


def test_on_a_host_the_operators_compute_and_what_lies_outside_them_is_exposed() -> None:
    made = service([Work(), Work(gap=3 * MS), Work(profiled=False)])
    begin, end = made.steps.launched, made.steps.finished
    requests = requests_table(1, client_start=begin[:1], client_end=end[-1:], last_token=end[-1:])
    made = replace(made, requests=requests, participation=served(3))
    parts = scene(prepare(made, assess(made)), 0, "e2e").resources
    took = of(parts)
    assert [part.part for part in parts] == list(RESOURCES)
    assert sum(part.ns or 0 for part in parts) == int((end - begin).sum())
    assert took["unexplained"] == int(end[2] - begin[2])
    assert took["device_compute"] is None
    assert (took["exposed_host"] or 0) >= 3 * MS
    assert (took["host_compute"] or 0) > 0


def test_on_a_device_kernels_come_before_the_host_and_the_rest_is_idle() -> None:
    rows = Rows()
    rows.open("step", Layer.ENGINE, 0)
    rows.leaf("cudaLaunchKernel", Layer.RUNTIME, 0, 2 * MS)
    rows.close(10 * MS)
    rows.leaf("gemm", Layer.KERNEL, 1 * MS, 4 * MS, lane=2)
    rows.leaf("ncclDevKernel_AllReduce", Layer.COMMUNICATION, 5 * MS, 2 * MS, lane=2)
    steps = steps_table([Work()], np.array([0]), np.array([10 * MS]))
    whole = StepWork(*(np.array([value], dtype) for value, dtype in _one_step(len(rows.start))))
    times = {"client_start": np.array([0]), "client_end": np.array([10 * MS]), "last_token": np.array([10 * MS])}
    made = capture(
        replace(steps, scheduled=np.array([UNKNOWN])),
        whole,
        [Rank(0, "host", 1, "worker", rows.tree(), -1)],
        requests=requests_table(1, **times),
        participation=served(1),
    )
    numbers = assess(service([Work()]))  # of another capture: no number of it is used here
    took = of(scene(prepare(made, numbers), 0, "e2e").resources)
    assert took["device_compute"] == 4 * MS
    assert took["collective_transfer"] == 2 * MS
    assert took["host_compute"] is None
    assert (took["exposed_host"] or 0) + (took["device_idle"] or 0) == 4 * MS
    assert took["unexplained"] == 0


def _one_step(rows: int) -> list[tuple[int, type]]:
    return [(0, np.int32), (0, np.int32), (0, np.int64), (10 * MS, np.int64), (0, np.int32), (rows, np.int32)]
