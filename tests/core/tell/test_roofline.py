"""Work is counted to the operation, and how near a call comes to the roof follows from it."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.devices import Device, device_called, devices
from teller_core.data.report_operators import Roofline
from teller_core.data.shapes import Tensor, tensors_of
from teller_core.tell.roofline import Work, fits, roofline, work_of

MADE = Device("Made", {"bf16": 1e12, "fp32": 1e11, "tf32": 5e11}, 1e11, "nobody")
BF16, FLOAT = "c10::BFloat16", "float"
size = st.integers(1, 9)


def counted(call: Any, *sizes: tuple[int, ...]) -> int:
    """Operations, as PyTorch's own counter has them."""
    torch = pytest.importorskip("torch")
    counter = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode(display=False)
    tensors = [torch.zeros(shape, device="meta") for shape in sizes]
    with counter:
        call(torch, *tensors)
    return int(counter.get_total_flops())


@given(size, size, size, size)
def test_products_are_counted_as_pytorch_counts_them(b: int, m: int, k: int, n: int) -> None:
    cases: list[tuple[str, Any, list[tuple[int, ...]]]] = [
        ("mm", lambda t, x, y: t.mm(x, y), [(m, k), (k, n)]),
        ("addmm", lambda t, c, x, y: t.addmm(c, x, y), [(n,), (m, k), (k, n)]),
        ("bmm", lambda t, x, y: t.bmm(x, y), [(b, m, k), (b, k, n)]),
        ("linear", lambda t, x, w: t.nn.functional.linear(x, w), [(b, m, k), (n, k)]),
        ("linear", lambda t, x, w, c: t.nn.functional.linear(x, w, c), [(b, m, k), (n, k), (n,)]),
    ]
    for name, call, sizes in cases:
        work = work_of(f"aten::{name}", [Tensor(FLOAT, one) for one in sizes])
        assert work is not None
        assert work.flops == counted(call, *sizes)


@given(size, size, size, size, size)
def test_attention_is_counted_as_pytorch_counts_it(b: int, heads: int, tokens: int, keys: int, width: int) -> None:
    sizes = [(b, heads, tokens, width), (b, heads, keys, width), (b, heads, keys, width)]
    formula = pytest.importorskip("torch.utils.flop_counter").sdpa_flop_count
    work = work_of("aten::scaled_dot_product_attention", [Tensor(BF16, one) for one in sizes])
    assert work is not None
    assert work.flops == formula(*sizes)
    turned = [Tensor(BF16, (one[0], one[2], one[1], one[3])) for one in sizes]
    assert work_of("aten::_flash_attention_forward", turned) == work


@pytest.mark.parametrize(
    ("operator", "sizes", "bytes_"),
    [
        ("aten::mm", [(3, 5), (5, 7)], 2 * (15 + 35 + 21)),
        ("aten::addmm", [(7,), (3, 5), (5, 7)], 2 * (7 + 15 + 35 + 21)),
        ("aten::add", [(4, 1), (1, 6)], 2 * (4 + 6 + 24)),
        ("aten::add_", [(4, 6), (6,)], 2 * (24 + 6 + 24)),
        ("aten::copy_", [(8,), (8,)], 2 * 16),
        ("aten::native_layer_norm", [(2, 8), (8,), (8,)], 2 * (16 + 8 + 8 + 16)),
    ],
)
def test_bytes_are_each_input_once_and_the_output_once(
    operator: str, sizes: list[tuple[int, ...]], bytes_: int
) -> None:
    work = work_of(operator, [Tensor(BF16, one) for one in sizes])
    assert work is not None
    assert work.bytes == bytes_


def test_a_look_up_reads_its_rows_and_not_the_table() -> None:
    work = work_of("aten::embedding", [Tensor(BF16, (1000, 8)), Tensor("long int", (2, 3))])
    assert work == Work(0, 2 * 6 * 8 * 2 + 6 * 8, BF16)


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("aten::mm", [Tensor(FLOAT, (3, 5)), Tensor(FLOAT, (4, 7))]),
        ("aten::mm", [Tensor(FLOAT, (3, 5))]),
        ("aten::mm", [Tensor("ComplexFloat", (3, 5)), Tensor("ComplexFloat", (5, 7))]),
        ("aten::bmm", [Tensor(FLOAT, (2, 3, 5)), Tensor(FLOAT, (3, 5, 7))]),
        ("aten::linear", [Tensor(FLOAT, (5,)), Tensor(FLOAT, ())]),
        ("aten::mul", [Tensor(FLOAT, (4,)), Tensor(BF16, (4,))]),
        ("aten::add", [Tensor(FLOAT, (4,)), Tensor(FLOAT, (3,))]),
        ("aten::_flash_attention_forward", [Tensor(FLOAT, (4, 3, 2))] * 3),
        ("aten::frobnicate", [Tensor(FLOAT, (4,))]),
        ("vllm::mm", [Tensor(FLOAT, (3, 5)), Tensor(FLOAT, (5, 7))]),
        ("aten::mm", []),
    ],
)
def test_shapes_that_do_not_fit_and_operators_that_are_not_known_count_nothing(
    operator: str, inputs: list[Tensor]
) -> None:
    assert work_of(operator, inputs) is None


@given(st.integers(0, 10**9), st.integers(1, 10**9), st.integers(1, 10**9))
def test_the_roof_is_the_longer_of_computing_and_moving(flops: int, moved: int, took: int) -> None:
    said = roofline(Work(flops, moved, BF16), MADE, ["nvjet"], "bf16", took)
    least = max(Fraction(flops, 1000), Fraction(moved, 100))
    if isinstance(said, str):
        assert least > took
    else:
        assert least <= took * Fraction(102, 100)
        assert said.reached == pytest.approx(float(least / took), abs=1e-4)
        assert said.bound == ("compute" if Fraction(flops, 1000) >= Fraction(moved, 100) else "memory")


def test_a_faster_type_inside_is_taken_from_the_name_of_the_kernel() -> None:
    plain, inside = (roofline(Work(10**9, 8, FLOAT), MADE, ["x"], named, 1e8) for named in ("fp32", "tf32/fp32"))
    assert isinstance(plain, Roofline) and isinstance(inside, Roofline)
    assert (plain.least_ms, inside.least_ms) == (10.0, 2.0)


def test_no_roof_is_claimed_for_another_kernels_work_or_an_unknown_peak() -> None:
    reduction = roofline(Work(1, 1, BF16), MADE, ["void cublasLt::splitKreduce_kernel<32>"], "bf16", 1e9)
    unknown = roofline(Work(1, 1, "double"), MADE, ["nvjet"], None, 1e9)
    assert isinstance(reduction, str) and "another kernel" in reduction
    assert isinstance(unknown, str) and "no peak" in unknown
    assert fits("aten::mm", "nvjet_tst_64x8") and not fits("aten::mm", "vectorized_elementwise_kernel")


def test_devices_are_known_by_the_names_that_profilers_write() -> None:
    for name, found in (
        ("NVIDIA H100 80GB HBM3", "H100 80GB HBM3"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L4", "L4"),
        ("AMD Instinct MI300X", "MI300X"),
        ("Tesla V100-SXM2-16GB", "V100-SXM2"),
    ):
        device = device_called(name)
        assert device is not None and device.name == found
    assert device_called("NVIDIA H2000") is None and device_called("") is None
    assert all(one.source and one.memory > 0 and min(one.peak.values()) > 0 for one in devices())


def test_only_whole_sizes_of_single_tensors_are_taken() -> None:
    told = '{"Input Dims":[[3,5],[],[5,7]],"Input type":["float","Scalar","float"]}'
    assert tensors_of(told) == [Tensor(FLOAT, (3, 5)), Tensor(FLOAT, (5, 7))]
    for bad in (
        '[[3,"x"]],"Input type":["float"]',
        '[[[3]]],"Input type":["TensorList"]',
        '[[-1]],"Input type":["float"]',
    ):
        assert tensors_of(f'{{"Input Dims":{bad}}}') == []
    assert tensors_of("{") == []
