"""A long Kineto trace: a real one repeated in time, with fresh ids, exact to the nanosecond.

    python tests/bench/generate_kineto.py BASE.json.gz OUT.json.gz [--events 1000000]

Correlation ids, External ids, flow ids, Python ids and event numbers of each copy follow those of the copy before, so that
launches and flows stay within their copy. OUT is compressed where its name ends in .gz.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

IDS = {
    "correlation": "correlation",
    "External id": "external",
    "Python id": "python",
    "Python parent id": "python",
    "Ev Idx": "number",
}
"""Arguments that are ids, and the counter that each belongs to."""

TIME = "time"
GAP_NS = 1_000_000
Event = dict[str, Any]
Slot = tuple[str, int]


class Number(str):
    """A number as the file writes it."""


def nanoseconds(value: Any) -> int:
    """Decimal microseconds in ns."""
    return int(Decimal(value) * 1000)


def fixed(event: Event) -> bool:
    """Whether the event stands once in a file: metadata, instants and the span of the whole trace."""
    return event.get("ph") not in ("X", "s", "t", "f") or event.get("cat") == "Trace"


def flow_counter(event: Event) -> str:
    """Flows from a launch to a kernel carry its correlation id, all others ids of their own."""
    return "correlation" if event.get("cat") in ("ac2g", "async_cpu_to_gpu", "async_gpu") else "flow"


def written(value: Any) -> str:
    """JSON of ``value``, its numbers as they were."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    return json.dumps(value)


def template(event: Event) -> tuple[str, list[Slot]]:
    """(text with a place for each number that changes, those numbers and their counters)."""
    slots: list[Slot] = []

    def place(counter: str, value: int) -> str:
        slots.append((counter, value))
        return "\1\2" if counter == TIME else "\1"

    def member(key: str, value: Any) -> str:
        if key == "ts":
            return f'"ts": {place(TIME, nanoseconds(value))}'
        if key == "id" and isinstance(value, int):
            return f'"id": {place(flow_counter(event), value)}'
        if key == "args" and isinstance(value, dict):
            return '"args": {\n      ' + ", ".join(argument(k, v) for k, v in value.items()) + "\n    }"
        return f"{json.dumps(key)}: {written(value)}"

    def argument(key: str, value: Any) -> str:
        is_id = key in IDS and isinstance(value, int) and value > 0
        return f"{json.dumps(key)}: {place(IDS[key], value) if is_id else written(value)}"

    text = "  {\n    " + ", ".join(member(key, value) for key, value in event.items()) + "\n  }"
    return text.replace("%", "%%").replace("\1\2", "%d.%03d").replace("\1", "%d"), slots


def copies(events: list[Event], count: int) -> Iterator[str]:
    """The repeated events of ``count`` copies, one string a copy."""
    templates = [template(event) for event in events]
    largest: dict[str, int] = {}
    for _, slots in templates:
        for counter, value in slots:
            largest[counter] = max(largest.get(counter, 0), value)
    ends = [nanoseconds(e["ts"]) + nanoseconds(e.get("dur", 0)) for e in events]
    largest[TIME] = max(ends) - min(nanoseconds(e["ts"]) for e in events) + GAP_NS
    for copy in range(count):
        yield ",\n".join(text % tuple(numbers(slots, largest, copy)) for text, slots in templates)


def numbers(slots: list[Slot], largest: dict[str, int], copy: int) -> Iterator[int]:
    """What fills a template in one copy."""
    for counter, value in slots:
        moved = value + copy * largest[counter]
        if counter == TIME:
            yield moved // 1000
            yield moved % 1000
        else:
            yield moved


def generate(base: Path, out: Path, events: int) -> int:
    """Write ``out``, at least ``events`` records long; returns how many it has."""
    content = base.read_bytes()
    document = json.loads(gzip.decompress(content) if base.suffix == ".gz" else content, parse_float=Number)
    listed = document.pop("traceEvents")
    once, repeated = [e for e in listed if fixed(e)], [e for e in listed if not fixed(e)]
    count = max(1, -(-(events - len(once)) // len(repeated)))
    with gzip.open(out, "wt", 6) if out.suffix == ".gz" else out.open("w") as target:
        header = "".join(f"  {json.dumps(key)}: {written(value)},\n" for key, value in document.items())
        target.write("{\n" + header + '  "traceEvents": [\n' + ",\n".join(f"  {written(e)}" for e in once))
        for number, copy in enumerate(copies(repeated, count)):
            target.write((",\n" if once or number else "") + copy)
        target.write("\n  ]\n}\n")
    return len(once) + count * len(repeated)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    chosen = parser.parse_args()
    sys.stdout.write(f"{chosen.out}: {generate(chosen.base, chosen.out, chosen.events)} records\n")


if __name__ == "__main__":
    main()
