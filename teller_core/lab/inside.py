"""What can be done to a running service from inside: asked for in one file, told in another. ``inject/`` is the other end."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from teller_core.data.whole import whole_lines
from teller_core.lab.outside import Delay, Process

INJECT = Path(__file__).parent / "inject"
VARIABLE = "TELLER_LAB_FOLDER"


class Told(NamedTuple):
    """What the service's processes told so far.

    ``processes``: by role. ``on``, ``off``: when each pid began and ended (Unix ns), one for each time. ``delays``: by pid.
    ``limited``: how often a scheduler was given a lower limit, by its name.
    """

    processes: Mapping[str, Process]
    on: Mapping[int, list[int]]
    off: Mapping[int, list[int]]
    delays: Mapping[int, list[Delay]]
    limited: Mapping[str, int]


def ask(folder: Path, what: Mapping[str, Any]) -> None:
    """Ask the processes that look into ``folder`` to do ``what``; empty: nothing."""
    _put(folder, "control", what)


def limit(folder: Path, what: Mapping[str, int]) -> None:
    """Ask the schedulers of the processes that look into ``folder`` for lower limits: tokens of a step (``chunk``), requests
    (``seats``); empty: for their own.
    """
    _put(folder, "limits", what)


def _put(folder: Path, name: str, what: Mapping[str, Any]) -> None:
    hidden = folder / f".{name}"
    hidden.write_text(json.dumps(what))
    hidden.replace(folder / name)


def told(folder: Path) -> Told:
    """What they told in ``folder``. A line that is being written is left for the next time."""
    processes: dict[str, Process] = {}
    times: dict[str, dict[int, list[int]]] = {"on": {}, "off": {}}
    delays: dict[int, list[Delay]] = {}
    limited: Counter[str] = Counter()
    for line in whole_lines(folder / "log").splitlines():
        match line.split():
            case [pid, "is", role, thread]:
                processes[role] = Process(int(pid), int(thread))
            case [pid, "on" | "off" as word, at]:
                times[word].setdefault(int(pid), []).append(int(at))
            case [pid, "did", start, stop]:
                delays.setdefault(int(pid), []).append(Delay(int(start), int(stop), int(stop) - int(start)))
            case [_, "limited", name]:
                limited[name] += 1
            case _:
                continue
    return Told(processes, times["on"], times["off"], delays, limited)
