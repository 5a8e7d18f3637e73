"""Tables of columns as one compressed file of plain arrays: the same bytes for the same columns, and no code in what is read.

Text is its distinct words one behind the other, their lengths, and which of them each cell is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from teller_core.data.sheet_parts import PARTS
from teller_core.data.sheets import COLUMNS, Sheets, layout_hash, no_sheets
from teller_core.data.table import Float32, Int8, Int32, Text, UInt8, columns
from teller_core.data.whole import whole
from teller_core.errors import FormatError

HEALTHY, NOT_JUDGED = "", "?"
"""The cause of a request that nothing struck, and of one of which nobody can say whether anything did."""
Arrays = Mapping[str, np.ndarray[Any, np.dtype[Any]]]


@dataclass(frozen=True)
class Taught:
    """Sheets of one life with what is true of them: what a model is trained on. Nothing of the truth stands in the sheets.

    ``life``: the start of a server; ``about``: its ``side``, ``engine``, ``model``, ``load`` and the like. A row a sheet:
    ``abnormal`` int8 1, 0, -1 not judged; ``cause``: of the taxonomy, HEALTHY or NOT_JUDGED (of a step what struck it);
    ``hard`` uint8: slow, and no fault; ``block``, ``strike`` (-1 healthy), ``window`` int32 of the life: sheets of one window are
    not independent; ``fault``, ``severity``: of the strike that the capture was cut for, whatever struck the sheet itself;
    ``d_prime`` float32 of that strike; ``rank`` int32: the position of the rank to blame, -1; ``operators``: names any of which
    is right, the first one best, a line each. ``guilty`` uint8 a row of ``sheets.pieces`` and ``guilty_suspect`` of
    ``sheets.suspects``: it has one of these names.
    """

    life: str
    about: Mapping[str, str]
    sheets: Sheets
    abnormal: Int8
    cause: Text
    hard: UInt8
    block: Int32
    strike: Int32
    window: Int32
    fault: Text
    severity: Text
    d_prime: Float32
    rank: Int32
    operators: Text
    guilty: UInt8
    guilty_suspect: UInt8

    def check(self) -> None:
        """Raise ValueError where the truth is not that of the sheets."""
        self.sheets.check()
        lengths = {name: len(getattr(self, name)) for name in TRUTH}
        if set(lengths.values()) - {len(self.sheets)}:
            raise ValueError(f"there must be one truth a sheet: {lengths}")
        if len(self.guilty) != len(self.sheets.pieces.symbol) or len(self.guilty_suspect) != len(
            self.sheets.suspects.row
        ):
            raise ValueError("there must be one truth a piece and a suspect")


TRUTH = ("abnormal", "cause", "hard", "block", "strike", "window", "fault", "severity", "d_prime", "rank", "operators")
"""The columns of :class:`Taught` with a row a sheet."""


def write_taught(taught: Taught, path: Path) -> None:
    """Keep ``taught`` in the file ``path``, whole or not at all."""
    arrays = {
        **_packed(
            "sheets", {name: getattr(taught.sheets, name) for name in (*COLUMNS, *(f"{part}_at" for part in PARTS))}
        ),
        **{
            name: array
            for part in PARTS
            for name, array in _packed(part, columns(getattr(taught.sheets, part))).items()
        },
        **_packed("truth", {name: getattr(taught, name) for name in (*TRUTH, "guilty", "guilty_suspect")}),
        **_packed("about", {"key": list(taught.about), "value": list(taught.about.values())}),
        **_packed("head", {"life": [taught.life], "layout": [layout_hash()], "vocabulary": [taught.sheets.vocabulary]}),
    }
    with whole(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read_taught(path: Path) -> Taught:
    """What :func:`write_taught` kept. Raises FormatError where the file is damaged, or its sheets are of another layout."""
    try:
        with path.open("rb") as packed, np.load(packed, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        head = _unpacked("head", arrays)
        if head["layout"] != [layout_hash()]:
            raise FormatError(path.name, "its sheets are of another layout than this program's", "Write them again")
        sheets = _sheets(arrays, head["vocabulary"][0])
        about = _unpacked("about", arrays)
        taught = Taught(
            life=head["life"][0],
            about=dict(zip(about["key"], about["value"], strict=True)),
            sheets=sheets,
            **_unpacked("truth", arrays),
        )
        taught.check()
    except (OSError, ValueError, KeyError, TypeError, IndexError, BadZipFile) as error:
        raise FormatError(path.name, "it is damaged, or holds no sheets", "Write the sheets again") from error
    return taught


def _sheets(arrays: Arrays, vocabulary: str) -> Sheets:
    empty = no_sheets()
    parts = {part: type(getattr(empty, part))(**_unpacked(part, arrays)) for part in PARTS}
    return Sheets(**_unpacked("sheets", arrays), **parts, vocabulary=vocabulary)


def _packed(table: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The columns ``given`` as arrays, by name."""
    arrays: dict[str, Any] = {}
    for name, column in given.items():
        if isinstance(column, np.ndarray):
            arrays[f"{table}/{name}"] = column
            continue
        distinct: dict[str, int] = {}
        code = [distinct.setdefault(cell, len(distinct)) for cell in column]
        words = [word.encode("utf-8", "surrogatepass") for word in distinct]
        arrays[f"{table}/{name}/code"] = np.array(code, dtype=np.int32)
        arrays[f"{table}/{name}/size"] = np.array([len(word) for word in words], dtype=np.int32)
        arrays[f"{table}/{name}/text"] = np.frombuffer(b"".join(words), dtype=np.uint8)
    return arrays


def _unpacked(table: str, arrays: Arrays) -> dict[str, Any]:
    """The columns that :func:`_packed` made arrays of."""
    given: dict[str, Any] = {}
    for path, array in arrays.items():
        whose, name, *what = path.split("/")
        if whose != table:
            continue
        if not what:
            given[name] = array
        elif what == ["code"]:
            given[name] = [*_words(arrays, f"{table}/{name}")]
    return given


def _words(arrays: Arrays, path: str) -> Iterator[str]:
    data: bytes = arrays[f"{path}/text"].astype(np.uint8).tobytes()
    which: list[int] = arrays[f"{path}/code"].tolist()
    ends: list[int] = np.cumsum(arrays[f"{path}/size"]).tolist()
    distinct = [data[low:high].decode("utf-8", "surrogatepass") for low, high in zip([0, *ends], ends, strict=False)]
    return (distinct[at] for at in which)
