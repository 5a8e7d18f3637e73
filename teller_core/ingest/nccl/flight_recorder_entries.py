"""What a dump of torch's flight recorder says, whether it was written as a pickle or as JSON.

The recorder counts the calls of every process group, so the same number of the same group is the same collective on every
rank. Dumps of versions 1 to 2.10 differ in what they name: ``seq_id`` became ``collective_seq_id`` and ``p2p_seq_id``, groups
got names and descriptions, their ranks became a text, and ``pg_status`` came. Source: the tests and the tutorial of torch.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from teller_core.data.records import CollectiveFact, GroupStatus, Process
from teller_core.data.table import UNKNOWN
from teller_core.errors import LimitError
from teller_core.ingest.decimals import NS_PER_MS, count, scaled
from teller_core.ingest.files.file_names import pid_of, rank_of
from teller_core.ingest.found import Found, Place
from teller_core.ingest.jsonl import as_object, text_of

MOST_ENTRIES = 1_000_000
"""Rings hold some thousand entries. A pickle could repeat one without end."""
MOST_TENSORS, MOST_DIMENSIONS = 4096, 16
MOST_RANKS, MOST_GROUPS = 1 << 17, 1 << 16
LARGEST_PRODUCT = 1 << 60
OF_TORCH = re.compile(r"[/\\]torch[/\\](?:distributed|utils|_)")
"""Frames of torch itself lie between a collective and the code that called it."""
MOST_FRAMES = 32
FOLDER = re.compile(r"[/\\]")


class _Group(NamedTuple):
    name: str
    description: str
    members: tuple[int, ...]


class _Dump(NamedTuple):
    """A dump being read. ``sizes``, ``products``: the numbers in lists of shapes and in shapes, by their identity: pickles
    share them, and what is read of a dump lives as long as this."""

    process: Process
    groups: Mapping[str, _Group]
    sizes: dict[int, int]
    products: dict[int, int]


def found_in(document: Mapping[str, Any], path: Path, place: Place) -> Found:
    """Collectives by call, and what the dump says of each group.

    Problems: ``bad_entry`` (without a time, a group or a number), ``status_of_unknown_group``. Errors: LimitError.
    """
    entries = cast("Sequence[object]", document["entries"])
    if len(entries) > MOST_ENTRIES:
        raise LimitError(path.name, f"it has over {MOST_ENTRIES:,} entries", "Keep fewer in the recorder's ring")
    groups = _groups(document.get("pg_config"))
    process = Process(place.host, pid_of(path) or 0, rank=_rank(document, groups, path))
    dump, found = _Dump(process, groups, {}, {}), Found(processes=[process])
    for entry in entries:
        found.events += 1
        fact = _fact(dump, as_object(entry))
        if fact is None:
            found.problems["bad_entry"] += 1
        else:
            found.kept += 1
            found.collectives.append(fact)
    _add_statuses(dump, document, entries, found)
    return found


def _rank(document: Mapping[str, Any], groups: Mapping[str, _Group], path: Path) -> int | None:
    """What the dump says, the only rank that is in all its groups (a dump lists those of its own rank), or the file's name."""
    said = count(document.get("rank"))
    members = {id(group.members): set(group.members) for group in groups.values() if group.members}
    common = set[int].intersection(*members.values()) if members else set[int]()
    if said is not None:
        return said
    return next(iter(common)) if len(common) == 1 else rank_of(path)


def _groups(config: object) -> dict[str, _Group]:
    """By id. ``pg_config`` holds ranks, as a list or as its text, or an object with them and a name and a description."""
    groups: dict[str, _Group] = {}
    read: dict[int, tuple[int, ...]] = {}
    for key, about in islice(as_object(config).items(), MOST_GROUPS):
        more = as_object(about)
        ranks = more.get("ranks") if more else about
        name = text_of(str(key), 64)
        if id(ranks) not in read:
            read[id(ranks)] = _members(ranks)
        groups[name] = _Group(name, text_of(more.get("desc"), 128), read[id(ranks)])
    return groups


def _members(ranks: object) -> tuple[int, ...]:
    if isinstance(ranks, str):
        return tuple(map(int, re.findall(r"\d{1,6}", ranks[: 8 * MOST_RANKS], re.ASCII)[:MOST_RANKS]))
    return tuple(rank for member in _listed(ranks)[:MOST_RANKS] if (rank := _number(member)) is not None)


def _fact(dump: _Dump, entry: Mapping[str, Any]) -> CollectiveFact | None:
    called = count(entry.get("time_created_ns"))
    group = _group_of(dump.groups, entry)
    point_to_point = entry.get("is_p2p") is True
    own = "p2p_seq_id" if point_to_point else "collective_seq_id"
    sequence = count(entry.get(own, entry.get("seq_id")))
    if called is None or sequence is None or group is None:
        return None
    sizes, state = entry.get("input_sizes"), text_of(entry.get("state"), 32)
    return CollectiveFact(
        dump.process,
        called,
        group.name,
        group.members,
        sequence,
        text_of(entry.get("profiling_name"), 128),
        point_to_point,
        _elements(dump, sizes),
        _dtype(entry.get("input_dtypes")),
        state,
        _reached(entry.get("time_discovered_started_ns")),
        _reached(entry.get("time_discovered_completed_ns")),
        description=group.description,
        done=state == "completed" or entry.get("retired") is True,
        duration=_duration(entry.get("duration_ms")),
        caller=_caller(entry.get("frames")),
    )


def _group_of(groups: Mapping[str, _Group], entry: Mapping[str, Any]) -> _Group | None:
    """The group of an entry: a name with a description, or, in old dumps, a number. The only group may have no name."""
    listed, number = _listed(entry.get("process_group")), count(entry.get("pg_id"))
    name = text_of(listed[0], 64) if listed else "" if number is None else str(number)
    if not listed and number is None:
        return None
    known = groups.get(name) or (next(iter(groups.values())) if len(groups) == 1 else _Group(name, "", ()))
    return _Group(name, text_of(listed[1], 128) if len(listed) > 1 else known.description, known.members)


def _number(value: object) -> int | None:
    """An integer from 0, as such or as text: the JSON dump writes its statuses as text."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None
    return count(value)


def _reached(value: object) -> int:
    """The JSON dump writes 0 for a time that did not come."""
    return count(value) or UNKNOWN


def _duration(value: object) -> int:
    """ns that the collective ran on the device, where the recorder measured it, as a number of milliseconds."""
    took = scaled(Decimal(repr(value)) if isinstance(value, float) else value, NS_PER_MS)
    return UNKNOWN if took is None or took < 0 else took


def _listed(value: object) -> Sequence[object]:
    """``value`` where it is a list or a tuple, else an empty one."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def _elements(dump: _Dump, sizes: object) -> int | None:
    """Numbers in all tensors together. Their shapes are counted once, however often a pickle repeats them."""
    if not isinstance(sizes, list | tuple):
        return None
    shapes = _listed(cast("object", sizes))
    if id(shapes) not in dump.sizes:
        total = sum(_product(dump, _listed(shape)) for shape in shapes[:MOST_TENSORS])
        dump.sizes[id(shapes)] = min(total, LARGEST_PRODUCT)
    return dump.sizes[id(shapes)]


def _product(dump: _Dump, shape: Sequence[object]) -> int:
    if id(shape) not in dump.products:
        product = 1
        for size in shape[:MOST_DIMENSIONS]:
            product = min(product * (count(size) or 0), LARGEST_PRODUCT)
        dump.products[id(shape)] = product
    return dump.products[id(shape)]


def _dtype(dtypes: object) -> str:
    listed = _listed(dtypes)
    return text_of(listed[0], 32) if listed else ""


def _caller(frames: object) -> str:
    """The innermost function outside torch that led to the call, with its file and line; empty where no frames were kept."""
    for frame in map(as_object, _listed(frames)[:MOST_FRAMES]):
        file = text_of(frame.get("filename"), 512)
        if file and not OF_TORCH.search(file):
            name, line = text_of(frame.get("name"), 80), count(frame.get("line")) or 0
            return f"{name} ({re.split(FOLDER, file)[-1]}:{line})"
    return ""


def _add_statuses(dump: _Dump, document: Mapping[str, Any], entries: Sequence[object], found: Found) -> None:
    """The last number that was called and the last that ended, by group."""
    statuses = as_object(document.get("pg_status"))
    named = _names_of_ids(dump, statuses, entries)
    for key, status in statuses.items():
        group = named.get(str(key))
        if group is None:
            found.problems["status_of_unknown_group"] += 1
            continue
        said = as_object(status)
        called, ended = (_number(said.get(f"last_{what}_collective")) for what in ("enqueued", "completed"))
        found.groups.append(GroupStatus(dump.process, group.name, group.description, group.members, called, ended))


def _names_of_ids(dump: _Dump, statuses: Mapping[str, Any], entries: Sequence[object]) -> dict[str, _Group]:
    """The group of each number under which a process itself counts its groups: statuses are by number, groups by name.

    Entries name both. For groups without entries: names count the groups of the whole job and numbers those of the process, both
    in the order in which they were made, so where there are as many of each they belong together in that order, unless an
    entry says otherwise.
    """
    told: dict[str, _Group] = {}
    for entry in map(as_object, entries):
        number, group = count(entry.get("pg_id")), _group_of(dump.groups, entry)
        if number is not None and group is not None:
            told.setdefault(str(number), group)
    keys, names = [str(key) for key in statuses], list(dump.groups)
    if len(keys) != len(names) or not all(key.isdecimal() and len(key) < 19 for key in (*keys, *names)):
        return told
    paired = dict(zip(sorted(keys, key=int), (dump.groups[name] for name in sorted(names, key=int)), strict=True))
    agree = all(paired[number].name == group.name for number, group in told.items() if number in paired)
    return paired if agree else told
