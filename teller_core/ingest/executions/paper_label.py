"""Labels of the published data set: what was done to a sample, and why. They are counted, and no answer ever knows them.

A label is what an answer is held against; one that had read it would be worth nothing.
"""

from pathlib import Path

from teller_core.ingest.files.source import read_whole
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import json_object

NAME = "paper_label"
MAX_LABEL = 1 << 20


def sniff(head: bytes) -> bool:
    """Whether it is a small object that says whether a sample is faulty, and why."""
    if len(head) > MAX_LABEL or b'"is_anomaly"' not in head:
        return False
    said = json_object(head)
    return said is not None and {"fault_type", "is_anomaly"} <= said.keys()


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Nothing but the count of the labels. Errors: LimitError."""
    said = json_object(read_whole(path, MAX_LABEL)) or {}
    found = Found(events=len(said))
    found.other["label"] = len(said)
    return found
