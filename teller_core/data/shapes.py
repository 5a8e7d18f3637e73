"""What an operator was called with, from the arguments that a profiler writes beside it."""

import json
from collections.abc import Sequence
from typing import NamedTuple, cast

TOLD = '"Input Dims"'
"""What arguments hold that tell shapes."""
SCALARS = frozenset({"Scalar", "ScalarList", ""})
"""Types of inputs that have no shape."""
TENSORS = "TensorList"
MOST_INPUTS = 8
"""Tensors told; those beyond are counted."""

LARGEST = 2**40
"""A size beyond this is no tensor's: numbers of a file are not trusted."""


class Tensor(NamedTuple):
    """A tensor that an operator was called with. ``kind``: the type of its elements, as PyTorch calls it."""

    kind: str
    sizes: tuple[int, ...]


def shapes_of(arguments: str) -> str:
    """The tensors among the inputs as ``float[32x16], long int[32]``; lists of tensors as ``2 tensors[..]``. Empty where
    ``arguments`` tell none: they come from a file and may hold anything.
    """
    dims, types = _told(arguments)
    inputs = [_input(shape, types[i] if i < len(types) else "?") for i, shape in enumerate(dims)]
    told = [text for text in inputs if text]
    more = [f"and {len(told) - MOST_INPUTS} more"] if len(told) > MOST_INPUTS else []
    return ", ".join([*told[:MOST_INPUTS], *more])


def tensors_of(arguments: str) -> list[Tensor]:
    """The tensors among the inputs, in order; empty where ``arguments`` tell none, and where one is a list of tensors."""
    dims, types = _told(arguments)
    found: list[Tensor] = []
    for kind, sizes in zip(types, dims, strict=False):
        if kind == TENSORS:
            return []
        if isinstance(kind, str) and kind not in SCALARS and isinstance(sizes, list):
            whole = [size for size in cast("list[object]", sizes) if type(size) is int and 0 <= size < LARGEST]
            if len(whole) < len(cast("list[object]", sizes)):
                return []
            found.append(Tensor(kind, tuple(whole)))
    return found


def _told(arguments: str) -> tuple[list[object], list[object]]:
    """Sizes and types of the inputs."""
    if TOLD not in arguments:
        return [], []
    try:
        said: object = json.loads(arguments)
    except (ValueError, RecursionError):
        return [], []
    if not isinstance(said, dict):
        return [], []
    row = cast("dict[str, object]", said)
    return _listed(row.get("Input Dims")), _listed(row.get("Input type"))


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
