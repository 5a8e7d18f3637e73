"""``samples.jsonl``: counters of processes and of the machine, read from outside ten times a second.

One counter a line: ``t`` (Unix ns), ``pid`` (0 for the whole machine), ``name`` (its unit at the end), ``value``; ``tid`` for
those of one thread. A counter that is missing has not changed.
"""

from pathlib import Path

from teller_core.data.records import Process, Sample
from teller_core.ingest.decimals import count, whole
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import first_object, objects, text_of

NAME = "samples"


def sniff(head: bytes) -> bool:
    """Whether the first line is a counter."""
    row = first_object(head)
    return row is not None and {"t", "pid", "name", "value"} <= row.keys()


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Samples; those of one thread are named ``thread_NAME``. Problems: ``bad_json``, ``bad_sample``."""
    found = Found()
    for row in objects(path):
        found.events += 1
        if row is None:
            found.problems["bad_json"] += 1
            continue
        time, pid, value = whole(row.get("t")), count(row.get("pid")), whole(row.get("value"))
        name, thread = text_of(row.get("name"), 64), count(row.get("tid"))
        if time is None or pid is None or value is None or not name:
            found.problems["bad_sample"] += 1
            continue
        found.kept += 1
        process = Process(place.host, pid) if pid else None
        found.samples.append(Sample(process, time, f"thread_{name}" if thread else name, value, thread))
    return found
