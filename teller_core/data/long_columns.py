"""Columns of very long traces: they lie in files, so that a capture may be longer than memory.

The files have no name, so nothing of them is left when the process ends, however it ends. They are made where the system
keeps temporary files (the environment's TMPDIR says where). The system may drop the pages of a column from memory at any
time, and reads them back when they are used.
"""

import mmap
from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from teller_core.data.means import within_means

LONG = 6 << 20
"""Rows above which a column is kept in a file: below, an import takes some 900 MB at most, and files would only cost time."""
PIECE = 1 << 17
"""Rows made at a time, so that what they are made from need not be as long as they are."""

Column = npt.NDArray[Any]


def kept(column: Column) -> Column:
    """``column`` itself or, where it is long, one with the same content in a file. Errors: OutOfRoom for a full disk."""
    return column if len(column) <= LONG else mapped(spool([column]), column.dtype)


def taken(table: Column, index: Column) -> Column:
    """``table[index]``, :func:`kept`. Indices, which may be negative, must lie within ``table``: that is not looked at."""
    if len(index) > LONG:
        return mapped(spool(_taken(table, index)), table.dtype)
    found = np.empty(len(index), dtype=table.dtype)
    for low in range(0, len(index), PIECE):
        np.take(table, index[low : low + PIECE], out=found[low : low + PIECE], mode="wrap")
    return found


def _taken(table: Column, index: Column) -> Iterator[Column]:
    return (np.take(table, index[low : low + PIECE], mode="wrap") for low in range(0, len(index), PIECE))


def spool(parts: Iterable[Column], file: BinaryIO | None = None) -> BinaryIO:
    """A file with ``parts`` one after another, behind what ``file`` holds already. Errors: OutOfRoom for a full disk."""
    with within_means("a long trace"):
        behind = cast(BinaryIO, TemporaryFile(prefix="teller-")) if file is None else file  # noqa: SIM115 - `mapped` closes it
        for part in parts:
            if len(part):  # numpy's own tofile says nothing where the last bytes found no room
                behind.write(np.ascontiguousarray(part).data.cast("B"))
        behind.flush()
    return behind


def mapped(file: BinaryIO, dtype: "np.dtype[Any]") -> Column:
    """All of ``file``, which is closed, as a column that can be written to."""
    with file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0), dtype=dtype)


def let_go(*columns: Column) -> None:
    """Drop the pages of those ``columns`` that lie in files from this process's memory. Their content stays."""
    for column in columns:
        file = file_of(column)
        if file is not None and hasattr(mmap, "MADV_DONTNEED"):  # Windows has no such call
            file.madvise(mmap.MADV_DONTNEED)


def file_of(column: Column) -> mmap.mmap | None:
    """The file in which ``column`` lies, None where it lies in memory."""
    base: object = column
    while isinstance(base, np.ndarray):
        base = cast(object, base.base)
    below = base.obj if isinstance(base, memoryview) else base
    return below if isinstance(below, mmap.mmap) else None
