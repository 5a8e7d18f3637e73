"""Words that a packed capture must not hold: of the machine that it was recorded on, and of what was done to the service."""

import re
import socket
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

from teller_core.data.capture import Capture
from teller_core.data.texts import Texts

TOP = ("bin", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "sys")
"""Of the Filesystem Hierarchy Standard 3.0, with the next line."""
MORE = ("tmp", "usr", "var")
PACKAGES = "site-packages/"

Change = Callable[[str], str]


def paths() -> re.Pattern[str]:
    """What finds a path of a machine in a text, and of this one. Routes of a server begin otherwise."""
    here = (Path(sys.prefix), Path.cwd(), Path(tempfile.gettempdir()).resolve(), Path.home())
    tops = {*TOP, *MORE, *(place.parts[1] for place in here if len(place.parts) > 1)}
    return re.compile(rf"(?<![\w.])/(?:{'|'.join(sorted(map(re.escape, tops)))})(?:/[^\s'\"():,;\]}}>\\]+)+")


def hosts_in(capture: Capture) -> list[str]:
    """The names of the machines of ``capture``, those of its ranks first."""
    beside = {socket.gethostname()}
    for column in (capture.pauses.process, capture.samples.process, capture.lines.process):
        beside |= {process.rpartition("/")[0] for process in set(column)}
    for rank in capture.ranks:
        beside |= {rank.tree.trace.origin.host or ""} if rank.tree is not None else set()
    named = [*dict.fromkeys(rank.host for rank in capture.ranks), *sorted(beside)]
    return [host for host in dict.fromkeys(named) if host and not re.fullmatch(r"host-\d+", host)]


def cleaned(capture: Capture) -> Capture:
    """``capture`` with machines called ``host-1`` and so on, and paths cut down to the package or the file they name."""
    path = paths()
    hosts = {host: f"host-{number}" for number, host in enumerate(hosts_in(capture), 1)}
    named = re.compile(
        "|".join(rf"(?<![\w.-]){re.escape(host)}(?![\w.-])" for host in sorted(hosts, key=len)[::-1]) or "$^"
    )
    known: dict[str, str] = {}

    def change(text: str) -> str:
        if (found := known.get(text)) is None:
            found = named.sub(lambda match: hosts[match[0]], text)
            known[text] = found = path.sub(lambda match: _last(match[0]), found)
        return found

    return _changed(capture, change)


def told_by(capture: Capture, words: Collection[str]) -> list[str]:
    """The ``words`` that some text of ``capture`` holds, and the names of machines and paths that it holds besides."""
    path, found = paths(), set[str]()
    hosts = set(hosts_in(capture))
    for text in set(_texts(capture)):
        found |= {word for word in words if word in text}
        found |= {"a path"} if path.search(text) else set()
        found |= {"a host"} if any(part in hosts for part in re.split(r"[^\w.-]+", text)) else set()
    return sorted(found)


def _last(path: str) -> str:
    _, packages, module = path.rpartition(PACKAGES)
    return module if packages else path.rpartition("/")[2]


def _changed(thing: Any, change: Change) -> Any:
    """``thing`` with every text in it changed. Columns of numbers are shared."""
    if isinstance(thing, str):
        return change(thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        return replace(thing, **{each.name: _changed(getattr(thing, each.name), change) for each in fields(thing)})
    if isinstance(thing, Mapping):
        known = cast(Mapping[str, Any], thing)
        return {change(name): _changed(value, change) for name, value in known.items()}
    if isinstance(thing, list | Texts | tuple):
        values = [_changed(value, change) for value in cast(Sequence[Any], thing)]
        made = cast(Any, type(cast(Any, thing)))
        return made(*values) if hasattr(made, "_fields") else tuple(values) if made is tuple else values
    return thing


def _texts(thing: Any) -> Iterator[str]:
    """Every text in ``thing``."""
    if isinstance(thing, str):
        yield thing
    elif is_dataclass(thing):
        for each in fields(thing):
            yield from _texts(getattr(thing, each.name))
    elif isinstance(thing, Mapping):
        for name, value in cast(Mapping[str, Any], thing).items():
            yield name
            yield from _texts(value)
    elif isinstance(thing, list | Texts | tuple):
        for value in cast(Sequence[Any], thing):
            yield from _texts(value)
