"""How a process that read a file hands its trees to the one that asked: columns and texts in a file, the rest as an object.

The file is mapped and its name removed at once: its pages are shared, nothing is copied, and it goes with the last column.
"""

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from teller_core.data.tree import Tree

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Table = TypeVar("Table", bound=DataclassInstance)
else:
    Table = TypeVar("Table")

ALIGNED = 64
"""Bytes: a line of a processor's cache."""
BETWEEN = "\0"
"""Between two texts. Where a text has it, the texts travel as they are."""


class _Column(NamedTuple):
    kind: str
    length: int
    at: int


class Packed(NamedTuple):
    """A tree without its columns and texts: these lie in a file, at the places told by field of the tree and of its trace."""

    bare: Tree
    columns: Sequence[Mapping[str, _Column]]
    texts: Mapping[str, tuple[int, int]]
    """(at which byte, how many bytes) of the texts of the trace."""


def pack(trees: Sequence[Tree], path: Path) -> list[Packed]:
    """Write what is large of ``trees`` to ``path``; returns the rest."""
    with path.open("xb") as file:
        return [_pack(tree, file) for tree in trees]


def unpack(packed: Sequence[Packed], path: Path) -> list[Tree]:
    """The trees whose columns lie in ``path``, mapped for reading alone. Removes ``path``."""
    with path.open("rb") as file:
        empty = not path.stat().st_size
        memory = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    path.unlink()
    return [_unpack(one, memory) for one in packed]


def _pack(tree: Tree, file: BinaryIO) -> Packed:
    bare, own = _without_columns(tree, file)
    trace, of_trace = _without_columns(tree.trace, file)
    texts: dict[str, tuple[int, int]] = {}
    for name in ("names", "args"):
        listed: Sequence[str] = getattr(trace, name)
        joined = BETWEEN.join(listed)
        if listed and joined.count(BETWEEN) == len(listed) - 1:
            texts[name] = (file.tell(), file.write(joined.encode("utf-8", "surrogatepass")))
    return Packed(replace(bare, trace=replace(trace, **{name: [] for name in texts})), [own, of_trace], texts)


def _unpack(packed: Packed, memory: "mmap.mmap | bytes") -> Tree:
    own, of_trace = ({name: _mapped(memory, column) for name, column in columns.items()} for columns in packed.columns)
    texts = {
        name: memory[at : at + size].decode("utf-8", "surrogatepass").split(BETWEEN)
        for name, (at, size) in packed.texts.items()
    }
    return replace(packed.bare, trace=replace(packed.bare.trace, **of_trace, **texts), **own)


def _without_columns(table: Table, file: BinaryIO) -> tuple[Table, dict[str, _Column]]:
    columns: dict[str, _Column] = {}
    for name, value in ((field.name, cast(object, getattr(table, field.name))) for field in fields(table)):
        if isinstance(value, np.ndarray):
            columns[name] = _written(cast(npt.NDArray[Any], value), file)
    bare: dict[str, Any] = {name: np.empty(0, dtype=column.kind) for name, column in columns.items()}
    return replace(table, **bare), columns


def _written(column: npt.NDArray[Any], file: BinaryIO) -> _Column:
    file.write(bytes(-file.tell() % ALIGNED))
    at = file.tell()
    if len(column):
        file.write(np.ascontiguousarray(column).data.cast("B"))
    return _Column(column.dtype.str, len(column), at)


def _mapped(memory: "mmap.mmap | bytes", column: _Column) -> npt.NDArray[Any]:
    if not column.length:
        return np.empty(0, dtype=column.kind)
    return np.frombuffer(memory, dtype=column.kind, count=column.length, offset=column.at)
