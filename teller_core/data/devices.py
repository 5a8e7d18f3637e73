"""What devices reach at best, from ``devices.toml``."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Device:
    """A kind of device. ``peak``: operations a second by element type; ``memory``: bytes a second; ``source``: who says so."""

    name: str
    peak: Mapping[str, float]
    memory: float
    source: str


@cache
def devices() -> Sequence[Device]:
    """All that are known, more particular names first."""
    table = tomllib.loads(files("teller_core.data").joinpath("devices.toml").read_text("utf-8"))
    return [
        Device(
            name=row["name"],
            peak={kind: 1e12 * value for kind, value in row["peak"].items()},
            memory=1e12 * row["memory"],
            source=row["source"],
        )
        for row in table["device"]
    ]


def device_called(name: str) -> Device | None:
    """The device that a profiler calls ``name``, None for one that is not known."""
    return next(
        (one for one in devices() if re.search(rf"(?<![A-Za-z0-9]){re.escape(one.name)}(?![A-Za-z0-9])", name)), None
    )
