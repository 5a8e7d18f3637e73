"""How near a call comes to what its device can do, from the shapes of its inputs: the roofline (Williams and others, 2009).

Operations are counted as ``torch.utils.flop_counter`` counts them: two for a multiplication with its addition, none for what
moves or maps elements, and attention as if no key were masked. Bytes are the least that have to move: each input read once, the
output written once.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from teller_core.data.devices import Device
from teller_core.data.report_operators import Roofline
from teller_core.data.shapes import Tensor

BYTES: Mapping[str, int] = {
    "double": 8,
    "long int": 8,
    "float": 4,
    "int": 4,
    "c10::BFloat16": 2,
    "c10::Half": 2,
    "short int": 2,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "unsigned char": 1,
    "signed char": 1,
    "bool": 1,
}
PEAK: Mapping[str, str] = {
    "double": "fp64",
    "float": "fp32",
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e5m2": "fp8",
    "signed char": "int8",
}
"""The element type of a peak, by what profilers call the type of a tensor."""
PRODUCTS = re.compile(r"gemm|gemv|nvjet|cutlass|Cijk_|xmma|matmul|\bmm\b")
ATTENTION = re.compile(r"flash|fmha|attn|attention|sdpa", re.IGNORECASE)
HELPERS = re.compile(r"splitK?reduce|epilogue::|ReduceSplitK", re.IGNORECASE)
"""Kernels that finish what another one did: the work of their operator is not theirs."""
BEYOND = 1.02
"""Faster than the roof by more than the data sheet's rounding: something is not as was supposed."""

Sizes = Sequence[int]


class Work(NamedTuple):
    """What one call has to do. ``flops`` and ``bytes``: exact; ``kind``: the type of its elements."""

    flops: int
    bytes: int
    kind: str


def work_of(operator: str, inputs: Sequence[Tensor]) -> Work | None:
    """What a call of ``operator`` with these tensors does; None for one that is not counted, or whose shapes do not fit it."""
    count = COUNTS.get(operator.removeprefix("aten::")) if operator.startswith("aten::") else None
    if count is None or not inputs or any(one.kind not in BYTES for one in inputs):
        return None
    try:
        return count(inputs)
    except (IndexError, ValueError):  # shapes of another form of the operator
        return None


def roofline(
    work: Work, device: Device, kernels: Sequence[str], precision: str | None, took_ns: float
) -> Roofline | str:
    """How near ``took_ns`` comes to the roof, or why that cannot be said. ``precision``: what the kernel's name says."""
    if any(HELPERS.search(kernel) for kernel in kernels):
        return "it finishes what another kernel of its operator did"
    kind = PEAK.get(work.kind, "")
    if kind == "fp32" and precision is not None and precision.startswith("tf32"):
        kind = "tf32"
    if work.flops and kind not in device.peak:
        return f"no peak of {device.name} for its type is known"
    compute = 1e9 * work.flops / device.peak[kind] if work.flops else 0.0
    least = max(compute, 1e9 * work.bytes / device.memory)
    if took_ns <= 0 or least > BEYOND * took_ns:
        return "it was faster than the device's memory and peak allow: inputs in a cache, or a faster type inside"
    return Roofline(
        device=device.name,
        flops=work.flops,
        bytes=work.bytes,
        bound="compute" if compute >= least else "memory",
        least_ms=round(least / 1e6, 6),
        reached=round(least / took_ns, 4),
        source=device.source,
    )


def fits(operator: str, kernel: str) -> bool:
    """Whether ``kernel`` may be the one that does the work of ``operator``, and no copy or reduction beside it."""
    name = operator.removeprefix("aten::")
    if name in _PRODUCTS:
        return PRODUCTS.search(kernel) is not None
    return ATTENTION.search(kernel) is not None if name in (*_ATTENTION, "_flash_attention_forward") else True


def _size(tensor: Tensor) -> int:
    return prod(tensor.sizes) * BYTES[tensor.kind]


def _product(inputs: Sequence[Tensor], a: Tensor, b: Tensor, n: int) -> Work:
    """``a`` times ``b``, which has ``n`` columns: its last size but for a batch is summed over."""
    rows, summed = prod(a.sizes[:-1]), a.sizes[-1]
    moved = sum(map(_size, inputs)) + rows * n * BYTES[a.kind]
    return Work(2 * rows * summed * n, moved, a.kind)


def _mm(inputs: Sequence[Tensor]) -> Work:
    a, b = inputs[:2]
    _same(a.sizes[-1], b.sizes[-2])
    _same(*a.sizes[:-2], *b.sizes[:-2]) if len(a.sizes) == len(b.sizes) == 3 else _same(len(a.sizes), len(b.sizes), 2)
    return _product(inputs[:2], a, b, b.sizes[-1])


def _addmm(inputs: Sequence[Tensor]) -> Work:
    work = _mm(inputs[1:3])
    return work._replace(bytes=work.bytes + _size(inputs[0]))


def _linear(inputs: Sequence[Tensor]) -> Work:
    a, weight = inputs[:2]
    _same(len(weight.sizes), 2)
    _same(a.sizes[-1], weight.sizes[-1])
    return _product(inputs[:3], a, weight, weight.sizes[0])


def _attention(inputs: Sequence[Tensor]) -> Work:
    """Queries, keys and values as (batch, heads, tokens, size); queries may have more heads."""
    q, k, v = inputs[:3]
    _same(len(q.sizes), len(k.sizes), len(v.sizes), 4)
    _same(q.sizes[0], k.sizes[0], v.sizes[0])
    _same(q.sizes[3], k.sizes[3])
    _same(k.sizes[2], v.sizes[2])
    pairs = prod(q.sizes[:3]) * k.sizes[2]
    out = prod(q.sizes[:3]) * v.sizes[3] * BYTES[q.kind]
    return Work(2 * pairs * (q.sizes[3] + v.sizes[3]), sum(map(_size, inputs[:3])) + out, q.kind)


def _tokens_first(inputs: Sequence[Tensor]) -> Work:
    """Attention of (batch, tokens, heads, size)."""
    turned = [one._replace(sizes=(one.sizes[0], one.sizes[2], one.sizes[1], *one.sizes[3:])) for one in inputs[:3]]
    return _attention(turned)


def _mapped(inputs: Sequence[Tensor]) -> Work:
    """Every element of the inputs, broadcast, becomes one of the output, which has their type where they have one."""
    if len({one.kind for one in inputs if one.sizes}) > 1:
        raise ValueError("the type of the output is not told")
    return Work(0, sum(map(_size, inputs)) + prod(_broadcast(inputs)) * BYTES[inputs[0].kind], inputs[0].kind)


def _in_place(inputs: Sequence[Tensor]) -> Work:
    return Work(0, sum(map(_size, inputs)) + _size(inputs[0]), inputs[0].kind)


def _copied(inputs: Sequence[Tensor]) -> Work:
    """From the second into the first, whose old elements nobody reads."""
    target, source = inputs[:2]
    return Work(0, _size(target) + _size(source), target.kind)


def _looked_up(inputs: Sequence[Tensor]) -> Work:
    """Rows of a table, as many as there are indexes."""
    table, index = inputs[:2]
    _same(len(table.sizes), 2)
    rows = prod(index.sizes) * table.sizes[1] * BYTES[table.kind]
    return Work(0, 2 * rows + _size(index), table.kind)


def _normed(inputs: Sequence[Tensor]) -> Work:
    """The first is read and written, what it is scaled by is read."""
    return Work(0, sum(map(_size, inputs[:3])) + _size(inputs[0]), inputs[0].kind)


def _broadcast(inputs: Sequence[Tensor]) -> Sizes:
    wide = max(len(one.sizes) for one in inputs)
    padded = [(1,) * (wide - len(one.sizes)) + tuple(one.sizes) for one in inputs]
    for sizes in zip(*padded, strict=True):
        _same(*(size for size in sizes if size != 1))
    return [0 if 0 in sizes else max(sizes) for sizes in zip(*padded, strict=True)]


def _same(*sizes: int) -> None:
    if len(set(sizes)) > 1:
        raise ValueError(sizes)


_PRODUCTS = {"mm", "bmm", "addmm", "linear"}
_ATTENTION = {
    "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
}
_MAPS = ("add", "sub", "mul", "div", "silu", "gelu", "relu", "sigmoid", "tanh", "exp", "neg", "rsqrt", "sin", "cos")
COUNTS: Mapping[str, Callable[[Sequence[Tensor]], Work]] = {
    "mm": _mm,
    "bmm": _mm,
    "addmm": _addmm,
    "linear": _linear,
    **dict.fromkeys(_ATTENTION, _attention),
    "_flash_attention_forward": _tokens_first,
    **dict.fromkeys(_MAPS, _mapped),
    **dict.fromkeys((f"{name}_" for name in _MAPS), _in_place),
    "copy_": _copied,
    "embedding": _looked_up,
    "native_layer_norm": _normed,
    "layer_norm": _normed,
}
"""How the operators of PyTorch are counted, by their names."""
