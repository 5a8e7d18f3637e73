"""Documents that are almost right: a case of a format with odd values, missing and doubled members, deep nesting, cuts.

Each takes a ``random.Random`` and gives bytes. JSON, pickles, messages of Protocol Buffers and databases stay well formed
(:func:`odd_document`); :func:`damaged` cares for nothing.
"""

import gzip
import json
import pickle  # fixtures of this folder alone go through it
import re
import sqlite3
from contextlib import closing, suppress
from copy import deepcopy
from random import Random
from typing import Any, cast

import zstandard

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 4611686019, 9999999999, 17959537523,
    2**31 - 1, 2**31, 2**53 + 1, 2**62 - 1, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, 10**40, -(10**30),
    0.5, -0.0, 1e-400, 1e18, 1e300, 1.7976931348623157e308, float("nan"), float("inf"), float("-inf"), 9.5e17, 253402300799,
)  # fmt: skip
ODD: tuple[Any, ...] = (
    *NUMBERS, None, True, False, "", "x", "NaN", "-1", "1e999", "9" * 40, "\ud800", "\udfff\ud800", "a\0b", "\u202e", "\x1b[31m",
    "\n", "Ignore previous instructions", "y" * 5000, [], {}, [[]], [None], {"": ""}, [1, "a", {}], {"value": None},
)  # fmt: skip
DEEP = 80
TOKENS = (
    b"9" * 40, b"-1", b"1e999", b"NaN", b"null", b"[" * 2000, b"{" * 70, b"\xff\xfe", b"\x00", b"\n", b"'", b'"', b"\\", b"{}",
    b"\r", b"\xef\xbb\xbf", b"\\ud800", b"9223372036854775807", b"4611686018427387904", b"\t", b"|", b",", b"\x1b[31m", b"0",
    b"\xc2\x85",
)  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_WORD = re.compile(rb"[^\s,;|]+")


def damaged(name: str, sample: bytes, other: bytes, chance: Random) -> bytes:
    """``sample`` cut, with bits flipped, snippets and pieces of ``other`` put in; perhaps compressed, and damaged then."""
    data = bytearray(sample)
    for _ in range(chance.choice([0, 1, 1, 2, 5, 20])):
        at, gone = chance.randrange(len(data) + 1), chance.choice([0, 0, 1, 4, 30])
        what = chance.randrange(4)
        if what == 0 and data:
            data[min(at, len(data) - 1)] ^= 1 << chance.randrange(8)
        elif what == 1:
            data[at : at + gone] = chance.choice(TOKENS)
        elif what == 2 and other:
            low = chance.randrange(len(other))
            data[at : at + gone] = other[low : low + chance.choice([1, 8, 64, 500])]
        else:
            del data[at : at + gone]
    if chance.random() < 0.25:
        data = data[: chance.randrange(len(data) + 1)]
    if chance.random() < 0.15:
        return _badly_packed(bytes(data), chance)
    return bytes(data)


def _badly_packed(data: bytes, chance: Random) -> bytes:
    """``data`` compressed: whole, cut, with a bit flipped, twice, or with nothing but the mark of it."""
    pack = chance.choice([gzip.compress, zstandard.ZstdCompressor().compress])
    packed = bytearray(pack(data))
    how = chance.randrange(5)
    if how == 0:
        return bytes(packed[: chance.randrange(len(packed))])
    if how == 1:
        packed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
        return bytes(packed)
    return (bytes(packed), pack(bytes(packed)), bytes(packed[:4]) + data)[how - 2]


def odd_document(name: str, sample: bytes, chance: Random) -> bytes:
    """``sample`` with odd values in it, in the form that it has."""
    if sample[:2] == b"\x1f\x8b":
        sample = gzip.decompress(sample)
    if sample.startswith(b"SQLite format 3"):
        return _odd_database(sample, chance)
    if name == "flight_recorder":
        value: Any = pickle.loads(sample)
        return pickle.dumps(_odd(value, chance), protocol=chance.choice([2, 3, 4, 5]))
    if name in ("otlp_protobuf", "chakra"):
        return _odd_message(sample, chance) if name == "otlp_protobuf" else _odd_messages(sample, chance)
    with suppress(ValueError, RecursionError):
        return _written(_odd(json.loads(sample), chance), chance)
    lines = sample.split(b"\n")
    for _ in range(chance.choice([1, 1, 2, 4])):
        at = chance.randrange(len(lines))
        lines[at] = _odd_line(lines[at], chance)
    if chance.random() < 0.3:
        low, high = sorted(chance.randrange(len(lines) + 1) for _ in range(2))
        piece = lines[low:high]
        lines[low:high] = chance.choice([[], piece * 2, piece[::-1], [b"", *piece]])
    return chance.choice([b"\n", b"\n", b"\n", b"\r\n", b"\n\n"]).join(lines)


def _odd_line(line: bytes, chance: Random) -> bytes:
    with suppress(ValueError, RecursionError):
        return _written(_odd(json.loads(line), chance), chance)
    found = list(chance.choice([_NUMBER, _WORD]).finditer(line))
    if not found:
        return line
    match = chance.choice(found)
    odd = str(chance.choice(NUMBERS)).encode() if chance.random() < 0.6 else chance.choice(TOKENS)
    return line[: match.start()] + odd + line[match.end() :]


def _places(value: Any, places: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside ``value``."""
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, inner in cast("list[tuple[Any, Any]]", pairs):
        places.append((value, key))
        _places(inner, places)
    return places


class _Twice(list[Any]):
    """Members of an object, keys repeated."""


def _odd(value: Any, chance: Random) -> Any:
    """``value``, changed in place where it can be, in one to four places."""
    for _ in range(chance.choice([1, 1, 2, 4])):
        places = _places(value, [])
        if not places or chance.random() < 0.02:
            return deepcopy(chance.choice(ODD))
        container, key = chance.choice(places)
        if isinstance(container, tuple):
            continue
        what = chance.randrange(10)
        if what == 0:
            del container[key]
        elif what == 1:
            container[key] = _deep(chance)
        elif what == 2 and isinstance(container, list):
            cast("list[Any]", container).extend(cast("list[Any]", container)[-3:])
        elif what == 2:
            container[chance.choice(["", "ts", "x" * 300, "__proto__", "\ud800"])] = deepcopy(chance.choice(ODD))
        elif what == 3:
            _, other = chance.choice(places)
            container[key] = container.get(other) if isinstance(container, dict) else deepcopy(chance.choice(ODD))
        elif what == 4 and isinstance(container[key], str):
            container[key] = str(chance.choice(NUMBERS))
        else:
            container[key] = deepcopy(chance.choice(NUMBERS if isinstance(container[key], int | float) else ODD))
    return value


def _deep(chance: Random) -> Any:
    value: Any = 1
    for _ in range(chance.choice([5, DEEP])):
        value = [value] if chance.random() < 0.5 else {"a": value}
    return value


def _written(value: Any, chance: Random) -> bytes:
    """JSON as writers write it: on one line or on many, escaped or not, keys at times doubled."""
    indent = chance.choice([None, None, None, 1])
    text = json.dumps(
        value, ensure_ascii=True, indent=indent, separators=chance.choice([None, (",", ":")]), default=str
    )
    if chance.random() < 0.1 and text.startswith("{") and len(text) > 2:
        text = "{" + text[1:-1].strip() + ", " + text[1:]
    if chance.random() < 0.1:
        text = text.replace("\n", "\r\n")
    if chance.random() < 0.1:  # numbers that no float holds
        text = re.sub(
            r"\b(\d+)\.\d+\b", lambda match: f"{match[1]}e{chance.choice([-99999999, 400, 99999999])}", text, count=1
        )
    return text.encode()


def _fields(data: bytes) -> list[tuple[int, int, Any]] | None:
    """(number, wire type, value) of a message; None where ``data`` is none."""
    at, found = 0, cast("list[tuple[int, int, Any]]", [])
    while at < len(data):
        key, at = _varint(data, at)
        kind, size = key & 7, {1: 8, 5: 4}.get(key & 7, 0)
        value: Any
        if not key >> 3 or kind in (3, 4, 6, 7):
            return None
        if kind == 0:
            value, at = _varint(data, at)
        else:
            if kind == 2:
                size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        if at > len(data) or at < 0:
            return None
        found.append((key >> 3, kind, value))
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data):
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at
    return value, len(data) + 1


def _encoded(value: int) -> bytes:
    value &= 2**70 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _message(fields: list[tuple[int, int, Any]]) -> bytes:
    out = b""
    for number, kind, value in fields:
        key = _encoded(number << 3 | kind)
        out += key + (_encoded(value) if kind == 0 else _encoded(len(value)) + value if kind == 2 else value)
    return out


def _odd_message(data: bytes, chance: Random) -> bytes:
    """One field of a message changed, or, inside one, of the message in it."""
    fields = _fields(data)
    if not fields:
        return chance.choice([b"", data, b"\x08" + _encoded(2**64 - 1), *TOKENS])
    at = chance.randrange(len(fields))
    number, kind, value = fields[at]
    what = chance.random()
    if what < 0.08:
        del fields[at]
    elif what < 0.16:
        fields.insert(at, fields[at])
    elif what < 0.22:
        fields[at] = chance.choice(
            [(number, 0, 2**64 - 1), (number, 2, b"\xff"), (2**28, kind, value), (number, 5, b"abcd")]
        )
    elif kind == 2:
        fields[at] = number, 2, _odd_message(value, chance)
    elif kind == 0:
        whole = [n for n in NUMBERS if isinstance(n, int)]
        fields[at] = number, 0, chance.choice(whole)
    else:
        fields[at] = number, kind, chance.choice([b"\xff", b"\x7f", b"\0", b"\x80"]) * (8 if kind == 1 else 4)
    return _message(fields)


def _odd_messages(data: bytes, chance: Random) -> bytes:
    """Messages one after the other, each behind its length."""
    at, out = 0, list[bytes]()
    while at < len(data):
        size, at = _varint(data, at)
        out.append(data[at : at + size])
        at += size
    one = chance.randrange(len(out))
    out[one] = _odd_message(out[one], chance)
    if chance.random() < 0.2:
        out.insert(chance.randrange(len(out)), chance.choice([b"", chance.choice(out)]))
    return b"".join(_encoded(len(message)) + message for message in out)


def _odd_database(sample: bytes, chance: Random) -> bytes:
    """A database with values of other kinds, without a column, a row or a table, or with an odd one."""
    with closing(sqlite3.connect(":memory:")) as base:
        base.deserialize(sample)
        for _ in range(chance.choice([1, 2, 4])):
            names = [row[0] for row in base.execute("select name from sqlite_master where type = 'table'")]
            table = chance.choice(names)
            columns = [row[1] for row in base.execute(f'pragma table_info("{table}")')]
            with suppress(sqlite3.Error, OverflowError):
                _odd_table(base, table, chance.choice(columns), chance)
        base.commit()
        return base.serialize()


def _odd_table(base: sqlite3.Connection, table: str, column: str, chance: Random) -> None:
    what = chance.randrange(8)
    if what == 0:
        base.execute(f'drop table "{table}"')
    elif what == 1:
        base.execute(f'alter table "{table}" drop column "{column}"')
    elif what == 2:
        base.execute(f'delete from "{table}" where rowid % 2 = ?', (chance.randrange(2),))
    elif what == 3:
        base.execute(f'alter table "{table}" rename column "{column}" to "x"')
    else:
        values = [
            *(n for n in NUMBERS if not isinstance(n, int) or abs(n) < 2**63),
            None,
            "text",
            b"\xff\0",
            "y" * 9000,
            "",
        ]
        where = chance.choice(["", " where rowid = (select min(rowid) from " + f'"{table}")'])
        base.execute(f'update "{table}" set "{column}" = ?{where}', (chance.choice(values),))
