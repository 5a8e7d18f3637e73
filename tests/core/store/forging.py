"""Stores that somebody else has made: they say that they are ours, and hold what we never write."""

import sqlite3
import struct
from pathlib import Path

from teller_core.store.store import Store
from tests.core.store.made import assessment_of, capture_of, report_of, tree_of

PAGE = 4096
TABLE = 13
"""The first byte of a page with rows of a table; that of an index is 10. Those above them have 8 less."""
_JOURNAL = bytes.fromhex("d9d505f920a163d7")


def store_at(path: Path) -> Path:
    """A store of ours with one capture, whose id is 0a."""
    with Store.open(path) as store:
        capture = capture_of("0a", tree_of(50))
        store.save(capture, assessment_of({}), [], report_of(capture))
    return path


def forged(path: Path, *statements: str) -> Path:
    """A store of ours, changed."""
    con = sqlite3.connect(store_at(path), isolation_level=None)
    try:
        con.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            con.execute(statement)
        con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        con.close()
    return path


def page_of(path: Path, table: str) -> int:
    """Where in the file the first page of a table begins."""
    con = sqlite3.connect(path)
    (root,) = con.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    con.close()
    return (root - 1) * PAGE


def without_end(path: Path, tree: str, deep: int = 6) -> Path:
    """A store whose table or index ``tree`` holds its rows 300 ** ``deep`` times, or so: pages all of whose children are the
    page below them.
    """
    whole = bytearray(store_at(path).read_bytes())
    root = page_of(path, tree)
    lowest = whole[root : root + PAGE]
    content = b"\1" if lowest[0] == TABLE else _first_cell(lowest)
    whole += lowest
    for _ in range(deep - 1):
        whole += _pointing(len(whole) // PAGE, lowest[0], content)
    whole[root : root + PAGE] = _pointing(len(whole) // PAGE, lowest[0], content)
    whole[28:32] = (len(whole) // PAGE).to_bytes(4, "big")
    path.write_bytes(whole)
    return path


def _first_cell(page: bytearray) -> bytes:
    """The first row of a page of an index: its length, below 128 bytes, and its values."""
    at = int.from_bytes(page[8:10], "big")
    return bytes(page[at : at + 1 + page[at]])


def _pointing(below: int, lowest: int, content: bytes) -> bytes:
    """A page above those of the kind ``lowest``, all of whose children are the page ``below``."""
    cell = below.to_bytes(4, "big") + content
    places = min(300, (PAGE - 12) // (2 + len(cell)))
    at = PAGE - len(cell)
    head = struct.pack(">BHHHBI", lowest - 8, 0, places, at - (places - 1) * len(cell), 0, below)
    pointers = b"".join(struct.pack(">H", at - place * len(cell)) for place in range(places))
    return (head + pointers).ljust(PAGE - places * len(cell), b"\0") + cell * places


def with_journal(path: Path, victim: Path) -> Path:
    """A store beside which a journal lies whose playing back ends with the removal of ``victim``."""
    store_at(path)
    name = str(victim).encode()
    head = _JOURNAL + struct.pack(">IIIII", 0, 0, path.stat().st_size // PAGE, 512, PAGE)
    tail = struct.pack(">I", 0x40000000 // PAGE + 1) + name + struct.pack(">II", len(name), sum(name)) + _JOURNAL
    path.with_name(path.name + "-journal").write_bytes(head.ljust(512, b"\0") + tail)
    return path
