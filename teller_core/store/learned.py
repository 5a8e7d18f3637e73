"""What was learned of services: a row a baseline, its numbers as compressed JSON, one transaction each."""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import zstandard

from teller_core.data.assessment import Baselines
from teller_core.data.learned import FORMAT, READABLE, Costs, HealthyClaims, Learned, StepCosts, called
from teller_core.data.table import columns
from teller_core.errors import StoreError, UnknownName
from teller_core.store.chunks import LEVEL, unpacked
from teller_core.store.tables import bound, kinds, text

_LARGEST = 1 << 26
"""Bytes of JSON. A baseline that claims more is damaged."""
DAMAGED = 0
"""The format of a row that nobody could have written."""
_WRONG = (zstandard.ZstdError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading such a row comes to."""


class LearnedRow(NamedTuple):
    """A baseline without its numbers. ``format``: of them, as :data:`teller_core.data.learned.FORMAT`; DAMAGED where no more is
    known of it than its name.
    """

    name: str
    service: Mapping[str, str]
    learned_at: str
    format: int

    @property
    def called(self) -> str:
        """As :attr:`Learned.called`."""
        return called(self.name, self.learned_at)


def read_rows(con: sqlite3.Connection) -> list[LearnedRow]:
    """All baselines, by name."""
    rows = con.execute("SELECT name, service, learned_at, format FROM learned ORDER BY name").fetchall()
    return [_row(*row) for row in rows]


def _row(name: Any, service: Any, learned_at: Any, number: Any) -> LearnedRow:
    try:
        return LearnedRow(text(name), _texts_of(json.loads(service)), _text(learned_at), int(number))
    except _WRONG:
        return LearnedRow(text(name), {}, "", DAMAGED)


def broken(name: str) -> StoreError:
    """What is raised for a baseline that nobody could have written."""
    return StoreError(
        f"the baseline {name}",
        "what the store has of it is damaged",
        "Forget it, with `learn` --forget, and learn it again",
    )


def read(con: sqlite3.Connection, name: str) -> Learned:
    """The baseline of this name. Raises UnknownName, StoreError."""
    row = con.execute("SELECT format, body FROM learned WHERE name = ?", (bound(name),)).fetchone()
    if row is None:
        raise UnknownName("the baseline", "none has this name", "List them with `learn` --list")
    if row[0] not in READABLE:
        raise StoreError(f"the baseline {name}", "another version of TELLER learned it", "Learn it again, with `learn`")
    try:
        made = _read(json.loads(unpacked(row[1], _LARGEST, zstandard.ZstdDecompressor())))
        made.check()
    except (*_WRONG, StoreError) as error:
        raise broken(name) from error
    return made


def write(con: sqlite3.Connection, learned: Learned) -> None:
    """Keep a baseline in place of one of its name."""
    body = zstandard.ZstdCompressor(level=LEVEL).compress(json.dumps(_plain(learned)).encode())
    row = (bound(learned.name), json.dumps(dict(learned.service)), learned.learned_at, FORMAT, body)
    con.execute("INSERT OR REPLACE INTO learned (name, service, learned_at, format, body) VALUES (?, ?, ?, ?, ?)", row)


def remove(con: sqlite3.Connection, name: str) -> None:
    """Remove a baseline. Raises UnknownName."""
    if con.execute("DELETE FROM learned WHERE name = ?", (bound(name),)).rowcount == 0:
        raise UnknownName("the baseline", "none has this name", "List them with `learn` --list")


def _plain(learned: Learned) -> dict[str, Any]:
    """As JSON has it. Python's reads and writes NaN, and nobody else is shown this."""
    steps = learned.step_costs
    return {
        "name": learned.name,
        "service": dict(learned.service),
        "learned_at": learned.learned_at,
        "captures": list(learned.captures),
        "requests": learned.requests,
        "steps": learned.steps,
        "step_costs": steps
        and {"costs": _plain_costs(steps.costs), "shift": dict(steps.shift), "spread": dict(steps.spread)},
        "request_costs": {metric: _plain_costs(each) for metric, each in learned.request_costs.items()},
        "rest": dict(learned.rest),
        "levels": dict(learned.levels),
        "operators": _listed(columns(learned.operators)),
        "claims": _listed(columns(learned.claims)),
    }


def _plain_costs(costs: Costs) -> dict[str, Any]:
    return {
        "used": list(costs.used),
        "cost": costs.cost.tolist(),
        "spread": costs.spread,
        "inverse": costs.inverse.tolist(),
        "peers": costs.peers,
    }


def _listed(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: column.tolist() if isinstance(column, np.ndarray) else column for name, column in table.items()}


def _read(body: Mapping[str, Any]) -> Learned:
    steps = body["step_costs"]
    operators: dict[str, Any] = {
        name: _texts(body["operators"][name]) if dtype is None else np.array(body["operators"][name], dtype)
        for name, dtype in kinds(Baselines).items()
    }
    claims = body["claims"]
    return Learned(
        name=_text(body["name"]),
        service=_texts_of(body["service"]),
        learned_at=_text(body["learned_at"]),
        captures=_texts(body["captures"]),
        requests=int(body["requests"]),
        steps=int(body["steps"]),
        step_costs=steps and StepCosts(_read_costs(steps["costs"]), _floats(steps["shift"]), _floats(steps["spread"])),
        request_costs={metric: _read_costs(each) for metric, each in body["request_costs"].items()},
        rest=_floats(body["rest"]),
        levels=_floats(body["levels"]),
        operators=Baselines(**operators),
        claims=HealthyClaims(
            _texts(claims.get("metric", ["e2e"] * len(claims["cause"]))),  # format 1 was of no other metric
            _texts(claims["cause"]),
            np.array(claims["rate"], float),
            np.array(claims["share"], float),
        ),
    )


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError("no text")
    return given


def _texts(given: Any) -> list[str]:
    if not isinstance(given, list):
        raise TypeError("no list")
    return [_text(each) for each in cast("list[Any]", given)]


def _texts_of(given: Any) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in given.items()}


def _floats(given: Any) -> dict[str, float]:
    return {_text(name): float(value) for name, value in given.items()}


def _read_costs(given: Mapping[str, Any]) -> Costs:
    many = 1 + len(given["used"])
    inverse = np.array(given["inverse"], float).reshape(many, many)
    return Costs(
        _texts(given["used"]), np.array(given["cost"], float), float(given["spread"]), inverse, int(given["peers"])
    )
