"""Who recorded a PyTorch-profiler trace: rank, world, groups, devices, from the header of the file."""

import json
from collections.abc import Sequence
from typing import Any, cast

from teller_core.data.trace import Origin


def whole(value: object) -> int | None:
    """``value`` as an integer of 64 bits if it is one, or a string of one; None otherwise."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.strip().removeprefix("-").isdecimal() and len(value) < 20:
        value = int(value)
    if not isinstance(value, int) or not -(2**63) <= value < 2**63:
        return None
    return value


def origin_of(header: dict[str, Any], clock: str, pid: int | None) -> Origin:
    """Origin from the header's members, whichever of them there are; what is not what it should be counts as not said."""
    info = header.get("distributedInfo")
    said = cast(dict[str, object], info) if isinstance(info, dict) else {}
    host = header.get("host_name")
    return Origin(
        producer="kineto",
        clock=clock,
        rank=whole(said.get("rank")),
        world=whole(said.get("world_size")),
        host=host if isinstance(host, str) and host else None,
        pid=pid,
        devices=_devices(header.get("deviceProperties")),
        groups=_groups(said.get("pg_config")),
    )


def _devices(value: object) -> tuple[str, ...]:
    found = cast(list[object], value) if isinstance(value, list) else []
    names = [cast(dict[str, object], device).get("name") for device in found if isinstance(device, dict)]
    return tuple(name if isinstance(name, str) else "" for name in names)


def _groups(value: object) -> Sequence[tuple[str, tuple[int, ...]]]:
    groups: list[tuple[str, tuple[int, ...]]] = []
    for group in cast(list[object], _listed(value)):
        if not isinstance(group, dict):
            continue
        said = cast(dict[str, object], group)
        members = [whole(rank) for rank in cast(list[object], _listed(said.get("ranks")))]
        name = said.get("pg_name")
        groups.append((str(name) if isinstance(name, str | int) else "", tuple(m for m in members if m is not None)))
    return tuple(groups)


def _listed(value: object) -> list[Any]:
    """A list, or the list that a string writes in JSON: some versions put one into a string."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return cast(list[Any], value) if isinstance(value, list) else []
