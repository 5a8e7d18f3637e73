"""Where steps do not tell their work, calls of one place are normal for their shapes."""

import numpy as np
import pytest

from teller_core.data.assessment import Baselines
from teller_core.data.records import FileRead, Recording
from teller_core.data.trace import Lane, Layer, Origin
from teller_core.ingest.row_arrays import RowArrays
from teller_core.judge.assess import assess
from teller_core.judge.baseline import LEAST_SPREAD, WIDER
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.nest import nest

HOST = Lane("7", "7", False)
US = 1_000


def baselines(step: str) -> Baselines:
    """Twelve steps, each with two calls of one operator: a small one of 10 us and a large one of 80 us, in changing order."""
    rows = RowArrays()
    for n in range(12):
        begin = n * 1_000 * US
        rows.add(begin, 500 * US, step.format(n), HOST, category="user_annotation", layer=Layer.ENGINE)
        sizes = [(8, 10), (64, 80)][:: 1 if n % 2 else -1]
        for k, (size, took) in enumerate(sizes):
            said = f'{{"Input Dims":[[{size},16],[]],"Input type":["float","Scalar"]}}'
            at = begin + (10 + 100 * k) * US
            rows.add(at, took * US + n, "aten::mm", HOST, category="cpu_op", layer=Layer.OPERATOR, argument=said)
    (trace,) = rows.traces(Origin("kineto", "unix", rank=0, pid=7))
    recording = Recording(files=[FileRead("f", "kineto", 1)], traces=[(0, trace)])
    return assess(rebuild(recording, [nest(trace)], capture_id="c", name="c")).baselines


def test_each_set_of_shapes_has_a_norm_of_its_own_where_the_work_is_not_told() -> None:
    found = baselines("ProfilerStep#{}")
    mine = [i for i, name in enumerate(found.name) if name == "aten::mm"]
    told = {found.place[i]: (int(found.count[i]), round(int(found.median[i]) / US)) for i in mine}
    assert told == {"ProfilerStep## (float[8x16])": (12, 10), "ProfilerStep## (float[64x16])": (12, 80)}
    assert found.spread[mine].tolist() == pytest.approx([LEAST_SPREAD] * 2)


def test_steps_that_tell_their_work_are_compared_by_it() -> None:
    found = baselines("execute_context_0(0)_generation_4(4)_{}")
    places = [found.place[i] for i, name in enumerate(found.name) if name == "aten::mm"]
    assert not any("float" in place for place in places)
    assert len({place.rpartition(" #")[0] or place for place in places}) == 1


def test_shapes_that_nobody_told_widen_the_band() -> None:
    found = baselines("ProfilerStep#{}")
    other = found.name.index("ProfilerStep##")
    assert found.spread[other] == pytest.approx(np.hypot(LEAST_SPREAD, WIDER))
