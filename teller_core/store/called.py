"""Who is meant by what people call a capture or a request, and what is said where nobody is called that.

Ids of captures are ours and may be said. Ids of requests came out of files: near ones are told by their numbers.
"""

import sqlite3
from difflib import get_close_matches

from teller_core.data.request_ids import id_forms
from teller_core.errors import UnknownName
from teller_core.store.tables import bound, text

NEWEST = 1_000
"""Captures, and requests of one, whose ids are held against one that is not there."""
SHOWN = 12
"""Digits of a capture's id that are shown."""
NEAR = 2
LONGEST_NUMBER = 9
"""Digits. What has more is an id."""
_LIST = "List them with `slow`, or `search` for a part of it"
_CALLED = """FROM requests r {joined} WHERE (r.engine_id COLLATE NOCASE IN (?1, ?2, ?3) OR
    r.client_id COLLATE NOCASE IN (?1, ?2, ?3) OR r.trace_id COLLATE NOCASE IN (?1, ?2, ?3)) AND ?1 <> ''"""
_BEST = "?4 IN (r.engine_id, r.client_id, r.trace_id) DESC, r.number LIMIT 1"
"""What was given as it is comes before the same in another case, and of several requests of a trace the first is meant."""


def capture_called(con: sqlite3.Connection, prefix: str | None) -> str:
    """The id of the capture that begins with ``prefix``; of the newest without one. Raises UnknownName for none or several."""
    # SQLite counts (*) of a whole table in one step, which nothing ends where pages point to each other.
    (total,) = con.execute("SELECT count(key) FROM captures").fetchone()
    if not total:
        raise UnknownName("the capture", "nothing has been imported yet", "Import a trace, a log or a folder of them")
    if prefix is None:
        return str(con.execute("SELECT id FROM captures ORDER BY key DESC LIMIT 1").fetchone()[0])
    sql = "SELECT id FROM captures WHERE substr(id, 1, length(?1)) = ?1"
    found = [row[0] for row in con.execute(sql, (prefix.lower(),))] if prefix.isascii() and prefix else []
    if len(found) == 1:
        return str(found[0])
    if found:
        raise UnknownName("the capture", f"{len(found)} ids begin like that", "Give more of the id")
    held = "the one capture here" if total == 1 else f"none of the {total} captures here"
    begins = f"{held} does not begin like that" if total == 1 else f"{held} begins like that"
    raise UnknownName("the capture", begins, f"{_near_capture(con, prefix)}List their ids with `captures`")


def request_number(con: sqlite3.Connection, key: int, name: str) -> int:
    """The number of the request with this number or this engine, client or trace id, which :func:`id_forms` may spell otherwise.
    A number in the capture comes before an id that looks like one. Raises UnknownName.
    """
    number = _number(con, key, name)
    if number is None:
        raise UnknownName("the request", _not_there(con, key, name), _LIST)
    return number


def request_is_elsewhere(con: sqlite3.Connection, key: int, name: str) -> bool:
    """Whether another capture is to be asked for the request: this one has none of the name, which is no number."""
    return not _is_number(name.strip()) and _number(con, key, name) is None


def request_anywhere(con: sqlite3.Connection, name: str) -> tuple[str, int]:
    """The newest capture (its id) that has a request with this engine, client or trace id, and its number. Raises UnknownName."""
    called = _CALLED.format(joined="JOIN captures c ON c.key = r.capture")
    found = con.execute(f"SELECT c.id, r.number {called} ORDER BY r.capture DESC, {_BEST}", _forms(name)).fetchone()
    if found is None:
        total, newest = con.execute("SELECT count(key), max(key) FROM captures").fetchone()
        why = _not_there(con, newest, name)
        why = why if total == 1 else f"in none of the {total} captures one is called that; of the newest, {why}"
        raise UnknownName("the request", why, _LIST)
    return str(found[0]), int(found[1])


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= LONGEST_NUMBER


def _number(con: sqlite3.Connection, key: int, name: str) -> int | None:
    if _is_number(name.strip()):
        sql = "SELECT number FROM requests WHERE capture = ? AND number = ?"
        found = con.execute(sql, (key, int(name.strip()))).fetchone()
        if found is not None:
            return int(found[0])
    sql = f"SELECT r.number {_CALLED.format(joined='')} AND r.capture = ?5 ORDER BY {_BEST}"
    found = con.execute(sql, (*_forms(name), key)).fetchone()
    return None if found is None else int(found[0])


def _forms(name: str) -> list[str | bytes]:
    """The marks of _CALLED and _BEST: the ways in which it may be written down, and how it was given."""
    forms = id_forms(name)
    return [bound(form) for form in ((forms * 3)[:3] if len(forms) < 3 else forms) + [name.strip()]]


def _near_capture(con: sqlite3.Connection, prefix: str) -> str:
    """An offer of the id that is most like ``prefix``, empty for none."""
    length = min(len(prefix), SHOWN)
    sql = f"SELECT substr(id, 1, {SHOWN}) FROM captures ORDER BY key DESC LIMIT {NEWEST}"
    heads = {str(shown)[:length]: shown for (shown,) in con.execute(sql)}
    alike = get_close_matches(prefix[:length].lower(), heads, 1) if length else []
    return f"Did you mean {heads[alike[0]]}? " if alike else ""


def _not_there(con: sqlite3.Connection, key: int, name: str) -> str:
    """What requests the capture has instead."""
    (count,) = con.execute("SELECT count(*) FROM requests WHERE capture = ?", (key,)).fetchone()
    if not count:
        return "the capture has no requests"
    sql = f"SELECT number, engine_id, client_id, trace_id FROM requests WHERE capture = ? ORDER BY position LIMIT {NEWEST}"
    ids = {text(one): number for number, *named in con.execute(sql, (key,)) for one in named if one}
    near = sorted({ids[one] for form in id_forms(name)[:1] for one in get_close_matches(form, ids, NEAR, 0.8)})
    alike = f"; requests of much the same id: {', '.join(map(str, near))}" if near else ""
    return f"the capture has requests 1 to {count}, and none is called that{alike}"
