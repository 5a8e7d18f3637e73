"""Tables are frozen dataclasses whose array fields have one length. These functions serve all of them."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from teller_core.data.texts import Texts

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")

UNKNOWN = -(2**63)
"""A time or a duration (int64 ns) that nobody recorded. Zero is a time; this is the absence of one."""

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Int8 = npt.NDArray[np.int8]
UInt8 = npt.NDArray[np.uint8]
Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Text = list[str]
LongText = Sequence[str]
"""Text that may be compressed: see :mod:`texts`."""


def columns(table: "DataclassInstance") -> dict[str, Any]:
    """The column fields of a table (numpy arrays and lists of str), by name, in order of definition."""
    named = {f.name: getattr(table, f.name) for f in fields(table)}
    return {name: value for name, value in named.items() if isinstance(value, np.ndarray | list | Texts)}


def rows(table: "DataclassInstance") -> int:
    """How many rows a table has: the length of its columns, 0 for a table without any."""
    return max((len(column) for column in columns(table).values()), default=0)


def check_columns(table: "DataclassInstance") -> None:
    """Raise ValueError unless all columns of ``table`` have one length."""
    lengths = {name: len(column) for name, column in columns(table).items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{type(table).__name__}: columns differ in length: {lengths}")


def take(table: T, index: npt.NDArray[Any]) -> T:
    """The rows of ``table`` at ``index`` (positions or a boolean mask), as a table of the same type."""
    where = np.flatnonzero(index) if index.dtype == np.bool_ else index
    picked: dict[str, Any] = {}
    for name, column in columns(table).items():
        picked[name] = column[where] if isinstance(column, np.ndarray) else [column[i] for i in where.tolist()]
    return replace(table, **picked)
