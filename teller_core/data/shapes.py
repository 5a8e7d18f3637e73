"""What an operator was called with, from the arguments that a profiler writes beside it."""

import json
from collections.abc import Sequence
from typing import cast

TOLD = '"Input Dims"'
"""What arguments hold that tell shapes."""
SCALARS = frozenset({"Scalar", "ScalarList", ""})
"""Types of inputs that have no shape."""
TENSORS = "TensorList"
MOST_INPUTS = 8
"""Tensors told; those beyond are counted."""


def shapes_of(arguments: str) -> str:
    """The tensors among the inputs as ``float[32x16], long int[32]``; lists of tensors as ``2 tensors[..]``. Empty where
    ``arguments`` tell none: they come from a file and may hold anything.
    """
    if TOLD not in arguments:
        return ""
    try:
        said: object = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(said, dict):
        return ""
    row = cast("dict[str, object]", said)
    dims, types = _listed(row.get("Input Dims")), _listed(row.get("Input type"))
    inputs = [_input(shape, types[i] if i < len(types) else "?") for i, shape in enumerate(dims)]
    told = [text for text in inputs if text]
    more = [f"and {len(told) - MOST_INPUTS} more"] if len(told) > MOST_INPUTS else []
    return ", ".join([*told[:MOST_INPUTS], *more])


def _input(shape: object, kind: object) -> str:
    if not isinstance(kind, str) or kind in SCALARS or not isinstance(shape, list):
        return ""
    sizes = cast("list[object]", shape)
    if sizes and all(isinstance(size, list) for size in sizes):
        first = cast("list[object]", sizes[0])
        return f"{len(sizes)} tensors{_sizes(first)}" if _whole(first) else ""
    return f"{kind[:24]}{_sizes(sizes)}" if _whole(sizes) and kind != TENSORS else ""


def _whole(sizes: Sequence[object]) -> bool:
    return all(type(size) is int for size in sizes)


def _sizes(sizes: Sequence[object]) -> str:
    return f"[{'x'.join(str(size)[:20] for size in sizes[:12])}]"


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
