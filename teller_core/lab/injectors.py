"""What the lab can do to a service, from ``injectors.toml``: one table an injector, each with the one cause that it produces."""

import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from teller_core.data.causes import causes
from teller_core.errors import InputError, UnknownName

SEVERITIES = ("slight", "clear", "strong", "extreme")
ENGINES = ("vllm", "transformers")
POINTS: Mapping[str, str] = {
    "step": "worker",
    "operator": "worker",
    "schedule": "engine",
    "tokenize": "front_end",
    "detokenize": "front_end",
}
"""Where the service calls what was put inside, and the role of the process that does."""
PULSES = ("collect", "hold")
"""Acts of a thread of their own inside the process: they need its role and no point."""
ACTS: Mapping[str, Sequence[str]] = {
    "outside": ("burn", "stream", "quota", "freeze"),
    "inside": ("wait", "busy", "write", "threads", "repeat", "sync", "trace", *PULSES),
    "load": ("others", "shift", "bursts", "prefix", "schema", "first"),
    "link": ("link",),
}
ROLES = ("front_end", "engine", "worker", "machine", "client", "link")
METRICS = ("ttft", "itl_mean", "itl_max", "e2e")
NEEDS: Mapping[str, str] = {
    "root": "root",
    "cpu_quota": "a control group with the cpu controller that may be written",
    "disk": "a disk that is not memory",
    "device": "a GPU",
    "second_rank": "a second rank",
    "link": "two network namespaces",
    "small_cache": "a service that was started with a small cache",
    "shared_prefix": "prompts that share a beginning",
    "grammar": "requests with a schema",
    "fresh_start": "a service that has just been started",
}
"""What an injector may need, in words."""

Range = tuple[float, float]


@dataclass(frozen=True)
class Injector:
    """``cause`` is an id of the taxonomy, None for a hard negative. ``knobs``: name -> severity -> (least, most).

    ``rank``: the only one whose worker is struck; None: each rank is, alike.
    """

    name: str
    title: str
    cause: str | None
    where: str
    role: str
    act: str
    moves: str
    knobs: Mapping[str, Mapping[str, Range]]
    point: str = ""
    needs: Sequence[str] = ()
    engines: Sequence[str] = field(default=ENGINES)
    rank: int | None = None


@cache
def injectors() -> Mapping[str, Injector]:
    """All injectors by name. Raises InputError where the file does not hold what it should."""
    return read(files("teller_core.lab").joinpath("injectors.toml").read_text("utf-8"))


def injector(name: str) -> Injector:
    """The injector called ``name``. Raises UnknownName for one that is not there."""
    known = injectors()
    if name not in known:
        raise UnknownName("The fault", "it is none of " + ", ".join(known), "Name one of these")
    return known[name]


def read(text: str) -> Mapping[str, Injector]:
    """The injectors that ``text`` (TOML) defines.

    Raises InputError for a broken file, one injector defined twice, a key that nobody knows, a cause that the taxonomy lacks,
    a knob without a range for every severity.
    """
    try:
        tables = tomllib.loads(text)  # a table that stands twice is refused by TOML itself
    except tomllib.TOMLDecodeError as error:
        raise _refused(str(error)) from None
    found = {name: _injector(name, table) for name, table in tables.items()}
    same: dict[tuple[object, ...], str] = {}
    for one in found.values():
        what = (one.where, one.role, one.rank, one.point, one.act, one.cause, *one.knobs)
        limits = tuple(tuple(ranges.values()) for ranges in one.knobs.values())
        if (twin := same.setdefault((*what, limits), one.name)) != one.name:
            raise _refused(f"{one.name} does what {twin} does")
    return found


def draw(one: Injector, severity: str, chance: random.Random) -> Mapping[str, float]:
    """A value for every knob, from its range for ``severity``. A range of whole numbers gives whole numbers."""
    if severity not in SEVERITIES:
        raise UnknownName("The severity", "it is none of " + ", ".join(SEVERITIES), "Name one of these")
    values: dict[str, float] = {}
    for name, ranges in one.knobs.items():
        least, most = ranges[severity]
        if isinstance(least, int) and isinstance(most, int):
            values[name] = chance.randint(least, most)
        else:
            values[name] = round(chance.uniform(least, most), 3)
    return values


def _injector(name: str, table: Any) -> Injector:
    if not isinstance(table, dict):
        raise _refused(f"{name} is no table")
    given: dict[str, Any] = dict(table)  # pyright: ignore[reportUnknownArgumentType]  # a table of TOML
    known = set(Injector.__dataclass_fields__) - {"name"}
    if unknown := sorted(set(given) - known):
        raise _refused(f"{name} has keys that nobody knows: {', '.join(unknown)}")
    if absent := sorted({"title", "cause", "where", "role", "act", "moves", "knobs"} - set(given)):
        raise _refused(f"{name} lacks {', '.join(absent)}")
    given["knobs"] = {knob: _ranges(f"{name}.{knob}", ranges) for knob, ranges in given["knobs"].items()}
    given["cause"] = given["cause"] or None
    made = Injector(name=name, **given)
    if wrong := next(_wrong(made), ""):
        raise _refused(f"{name}: {wrong}")
    return made


def _wrong(one: Injector) -> Any:
    """What does not fit, one reason after the other."""
    if one.cause is not None and one.cause not in causes():
        yield f"the taxonomy has no cause {one.cause}"
    if one.act not in ACTS.get(one.where, ()):
        yield f"{one.act} is no act from {one.where}"
    if one.role not in ROLES:
        yield f"{one.role} is no role"
    if one.moves not in METRICS:
        yield f"{one.moves} is no latency"
    if (one.where == "inside" and one.act not in PULSES) != bool(one.point):
        yield "a hook point belongs to what acts inside and is no pulse"
    if one.point and POINTS.get(one.point) != one.role:
        yield f"the point {one.point} is not in a {one.role}"
    if one.rank is not None and (one.role != "worker" or (one.rank > 0) != ("second_rank" in one.needs)):
        yield "a rank belongs to a worker, and one beyond the first to a service of several"
    yield from (f"nobody knows the need {need}" for need in one.needs if need not in NEEDS)
    yield from (f"nobody knows the engine {engine}" for engine in one.engines if engine not in ENGINES)


def _ranges(knob: str, given: Any) -> Mapping[str, Range]:
    if not isinstance(given, dict) or tuple(given) != SEVERITIES:  # pyright: ignore[reportUnknownArgumentType]
        raise _refused(f"{knob} needs a range for each of {', '.join(SEVERITIES)}, in this order")
    limits: dict[str, Any] = dict(given)  # pyright: ignore[reportUnknownArgumentType]  # a table of TOML
    for severity, pair in limits.items():
        if not _is_range(pair):
            raise _refused(f"{knob} has no range for {severity}")
    return {severity: (pair[0], pair[1]) for severity, pair in limits.items()}


def _is_range(pair: Any) -> bool:
    match pair:
        case [int() | float() as least, int() | float() as most]:
            return 0 <= least <= most
        case _:  # pyright: ignore[reportUnknownVariableType]  # whatever else TOML knows
            return False


def _refused(why: str) -> InputError:
    return InputError("The table of injectors", why, "See teller_core/lab/injectors.toml")
