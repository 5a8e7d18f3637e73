"""Names that engines give to the range of a step."""

import numpy as np
import pytest

from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.data.tree import Tree
from teller_core.rebuild.annotations import PATTERNS, StepName, annotated, parse

READ = {
    "vllm": StepName(0, -1, 1, 1, 888, 0, 0, -1),
    "vllm.lengths": StepName(0, -1, 46, 9, 8155, 37, 37, 42919),
    "vllm.new_cached": StepName(0, -1, 32, -1, -1, -1, -1, -1),
    "sglang.mixed": StepName(1, -1, 12, 4, -1, 8, -1, -1),
    "sglang": StepName(1, -1, 15, 15, 15360, 0, 0, -1),
    "trtllm": StepName(1, 60000, 32, 0, 0, 32, -1, -1),
    "profiler": StepName(2, 12),
    "numbered": StepName(3, 19),
}


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.id)
def test_every_form_is_read_from_its_sample(pattern: object) -> None:
    assert parse(pattern.sample) == READ[pattern.id]  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("execute_context_2(54)_generation_2(2)", StepName(0, -1, 4, 2, 54, 2, 2)),
        ("step[DECODE bs=16]", StepName(1, -1, 16, 0, 0, 16, -1)),
        ("step[decode bs=64 g_sqsk=1234]", StepName(1, -1, 64, 0, 0, 64, -1)),
        ("[Executor] _forward_step: 1 ctx reqs, 3 gen reqs", StepName(1, -1, 4, 1, -1, 3, -1)),
    ],
)
def test_variants_of_a_form_are_read(name: str, read: StepName) -> None:
    assert parse(name) == read


@pytest.mark.parametrize(
    "name", ["capture_32_FULL", "step[DRAFT_EXTEND_V2 bs=1]", "execute_model", "step_19_data", "aten::mm"]
)
def test_other_ranges_are_no_steps(name: str) -> None:
    assert parse(name) is None


@pytest.mark.parametrize("name", ["execute_context_0(0)_generation_0(0)", "step[idle]"])
def test_a_dummy_run_of_an_idle_rank_is_empty(name: str) -> None:
    read = parse(name)
    assert read is not None
    assert read.empty


def tree(
    names: list[str], start: list[int], dur: list[int], *, parent: list[int], stop: list[int], device: set[int]
) -> Tree:
    n = len(names)
    lanes = [Lane("1", "1", False), Lane("1", "7", True)]
    lane = np.array([int(i in device) for i in range(n)], dtype=np.int32)
    zero = np.zeros(n, dtype=np.uint8)
    trace = Trace(
        np.array(start, np.int64), np.array(dur, np.int64), np.arange(n, dtype=np.int32), lane, zero,
        zero + np.uint8(Layer.ENGINE), np.full(n, -1, np.int64), np.full(n, -1, np.int32), names, lanes, ["user_annotation"],
        [], Origin("kineto", "unix"),
    )  # fmt: skip
    return Tree(trace, np.array(parent, np.int32), np.array(stop, np.int32))


def test_a_range_inside_a_range_is_the_same_step_and_fills_in_what_the_outer_one_does_not_say() -> None:
    names = ["execute_new_2_cached_1", "step[mixed bs=3 ext=2 dec=1]", "step[DECODE bs=4]"]
    steps = annotated(tree(names, [0, 1, 20], [10, 5, 5], parent=[-1, 0, -1], stop=[2, 2, 3], device=set()))
    assert steps.row.tolist() == [0, 2]
    assert steps.name[0] == StepName(0, -1, 3, 2, -1, 1, -1)


def test_device_copies_and_the_profilers_own_steps_do_not_count_beside_an_engines() -> None:
    names = ["ProfilerStep#3", "step[DECODE bs=4]", "step[DECODE bs=5]"]
    steps = annotated(tree(names, [0, 1, 2], [10, 5, 5], parent=[-1, 0, -1], stop=[2, 2, 3], device={2}))
    assert steps.row.tolist() == [1]


def test_the_profilers_steps_count_where_no_engine_named_any() -> None:
    steps = annotated(
        tree(["ProfilerStep#3", "ProfilerStep#4"], [0, 10], [10, 5], parent=[-1, -1], stop=[1, 2], device=set())
    )
    assert [name.number for name in steps.name] == [3, 4]
