"""Nodes of execution traces: what PyTorch and Chakra say of one operator, in the profiler's words.

``arguments`` is the text that the profiler itself writes beside an operator: ``Input Dims`` and ``Input type``, and for a
collective its name, size and group, so that whoever reads the one reads the other. Values of inputs are never kept.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from teller_core.ingest.decimals import LARGEST, whole
from teller_core.ingest.jsonl import as_list, text_of

MAX_INPUTS = 64
"""Inputs of one operator that are told."""
MAX_TENSORS = 30
"""Tensors of one list that are told: as many as the profiler itself writes."""
MAX_NAME = 4096
COLLECTIVE = "record_param_comms"
"""The name under which PyTorch notes a collective with its parameters."""
NO_COLLECTIVES = frozenset({"wait", "init"})
"""What is noted under that name besides."""
POINTER = "@"
WORD = re.compile(r"[a-z_][a-z_0-9]{2,40}")
_TENSOR = re.compile(r"Tensor\((?P<dtype>[^()]{1,40})\)")
_SCALARS = frozenset({"Int", "Double", "Bool", "SymInt", "SymFloat", "SymBool", "ComplexDouble"})
Row = Mapping[str, Any]


class Collective(NamedTuple):
    """What a node says of its collective; sizes in elements and bytes, None where it does not say."""

    kind: str = ""
    elements: int | None = None
    size: int | None = None
    dtype: str = ""
    group: str = ""


def name_of(value: object) -> str:
    """A node's name, as names of a profiler's spans are read: halves of surrogate pairs become U+FFFD."""
    if not isinstance(value, str):
        return ""
    return value[:MAX_NAME].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def arguments(shapes: object, types: object, about: Collective | None = None) -> str:
    """JSON text of the arguments, empty where nothing is known of them."""
    said: dict[str, object] = {}
    kinds = [_type(kind) for kind in as_list(types)[:MAX_INPUTS]]
    dims = [_dims(shape) for shape in as_list(shapes)[:MAX_INPUTS]]
    if kinds and len(dims) == len(kinds):
        said |= {
            "Input Dims": [d if t not in ("Scalar", "ScalarList", "") else [] for d, t in zip(dims, kinds, strict=True)]
        }
        said |= {"Input type": kinds}
    if about and about.kind:
        # A group that is told as a number is a pointer of its process: no other rank calls it so.
        group = "" if about.group.startswith(POINTER) else about.group
        said |= {"Collective name": about.kind, "In msg nelems": about.elements, "dtype": about.dtype}
        said |= {"Process Group Name": group}
    kept = {key: value for key, value in said.items() if value not in (None, "")}
    return json.dumps(kept, separators=(",", ":")) if kept else ""


def collective(name: str, values: object, types: object) -> Collective | None:
    """What :data:`COLLECTIVE` notes: the tensors, a sequence number, the group, the rank, the collective's name and more."""
    given, kinds = as_list(values), [text_of(kind, 200) for kind in as_list(types)]
    if name != COLLECTIVE or len(given) != len(kinds):
        return None
    words = [i for i, value in enumerate(given) if kinds[i] == "String" and WORD.fullmatch(text_of(value, 64))]
    if not words or given[words[0]] in NO_COLLECTIVES:
        return None
    at = words[0]
    first = kinds[0] if kinds else ""
    tensors = list(_tensors(given[0])) if "Tensor(" in first else []
    elements = sum(tensor[0] for tensor in tensors) if tensors else None
    size = sum(tensor[0] * tensor[1] for tensor in tensors) if tensors else None
    dtype = found["dtype"] if (found := _TENSOR.search(first)) else ""
    return Collective(text_of(given[at], 64), _small(elements), _small(size), dtype, _group(given, at))


def _group(values: Sequence[object], at: int) -> str:
    """The group's name: in a list of name and description, or a number, somewhere before the collective's name."""
    for value in values[:at]:
        named = as_list(value)
        if named and isinstance(named[0], str):
            return text_of(named[0], 64)
    number = whole(values[at - 2]) if at >= 2 else None
    return "" if number is None else f"{POINTER}{number}"


def _tensors(value: object) -> Iterable[tuple[int, int]]:
    """(elements, bytes of an element) of each tensor in ``value``: [id, storage, offset, elements, bytes, device]."""
    waiting = [value]
    for _ in range(4 * MAX_TENSORS):
        if not waiting:
            return
        item = as_list(waiting.pop())
        if len(item) >= 6 and all(type(part) is int for part in item[:5]) and isinstance(item[5], str):
            yield min(abs(int(item[3])), LARGEST >> 12), min(abs(int(item[4])), 64)
        else:
            waiting += item[:MAX_TENSORS]


def _small(count: int | None) -> int | None:
    return None if count is None else whole(count)


def _type(value: object) -> str:
    """``Tensor(float)`` as ``float``, plain values and lists of them as the profiler calls them."""
    text = text_of(value, 4000)
    listed = text.startswith("GenericList[")
    found = _TENSOR.search(text)
    if found:
        return "TensorList" if listed else found["dtype"]
    if listed:
        return "ScalarList"
    return "Scalar" if text in _SCALARS else ""


def _dims(value: object, depth: int = 0) -> list[Any]:
    """A shape or a list of shapes; what is no whole number is left out."""
    sizes: list[Any] = []
    for item in as_list(value)[: MAX_TENSORS if depth == 0 else MAX_INPUTS]:
        if isinstance(item, list):
            if depth < 2:
                sizes.append(_dims(cast("object", item), depth + 1))
        elif (size := whole(item)) is not None:
            sizes.append(size)
    return sizes
