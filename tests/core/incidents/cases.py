"""The cases, a table each in ``tests/data/incidents/NAME/case.toml``: the files of what happened, and of its look-alike.

``python -m tests.core.incidents.cases NAME FOLDER`` writes both, to be imported by hand.
"""

import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teller_core.data.report import Metric
from tests.core.incidents import records
from tests.core.incidents.logs import LOGS
from tests.core.incidents.profile import profile
from tests.core.incidents.world import World, play

FOLDER = Path(__file__).parents[2] / "data" / "incidents"
ENDED = 60
"""Seconds after all is over at which a file was last written to."""


@dataclass(frozen=True)
class Case:
    """A report, told again. ``place``: among how many causes the expected one stands; ``request``: which one is asked about, by
    its place among those of the case, -1 for the one that took longest; ``limit`` ms: it is asked why that was broken.
    """

    name: str
    report: str
    cause: str
    engine: str
    told: str
    capture: Mapping[str, Any]
    alike: str
    change: Mapping[str, Any]
    metric: Metric = "e2e"
    place: int = 1
    request: int = -1
    limit: float = 0.0
    forbids: str = ""
    """Of a report that ended with "no fault": the cause that is not to be named."""


def cases() -> list[Case]:
    """All of them, by name."""
    return [read(path) for path in sorted(FOLDER.glob("*/case.toml"))]


def read(path: Path) -> Case:
    told = tomllib.loads(path.read_text("utf-8"))
    alike = told.pop("look_alike")
    return Case(name=path.parent.name, alike=alike["is"], change=alike["change"], **told)


def changed(capture: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """``capture`` with what ``change`` has in the place of its own; files and settings of the service are added to its own."""
    out = dict(capture)
    for key, value in change.items():
        out[key] = out.get(key, {}) | value if isinstance(value, dict) else value
    return out


def write(capture: Mapping[str, Any], folder: Path) -> World:
    """The files that ``capture`` names, as those who were there would have left them."""
    folder.mkdir(parents=True)
    world = play(capture)
    files: Mapping[str, Mapping[str, Any]] = capture["files"]
    for kind, told in files.items():
        if told.get("left_out"):
            continue
        if kind in LOGS:
            LOGS[kind](world, folder, told)
        elif kind == "profile":
            profile(world, folder, told)
        else:
            getattr(records, kind)(world, folder)
    if "profile" in files and world.service.ranks > 1:
        _without_collectives(folder)
    ended = world.last / 1e9 + ENDED
    for path in folder.iterdir():
        os.utime(path, (ended, ended))
    return world


def _without_collectives(folder: Path) -> None:
    """Where a profile has the collectives, the recorder was not asked for them."""
    for path in folder.glob("host-*.jsonl"):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith('{"ph": "K"')), "utf-8")


if __name__ == "__main__":
    case = read(FOLDER / sys.argv[1] / "case.toml")
    write(case.capture, Path(sys.argv[2]) / "it")
    write(changed(case.capture, case.change), Path(sys.argv[2]) / "alike")
