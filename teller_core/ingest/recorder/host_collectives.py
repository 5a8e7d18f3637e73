"""``K`` of ``host-PID.jsonl``: a collective that the process called on a Gloo group, and how long the call lasted.

A synchronous call on such a group lasts as long as the collective. One that was only begun (``later``) tells when, not how long.
"""

from collections.abc import Mapping
from typing import Any

from teller_core.data.records import CollectiveFact, Process
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import count, few
from teller_core.ingest.found import Found
from teller_core.ingest.jsonl import text_of

MOST_RANKS = 1 << 20


def collective(found: Found, process: Process, row: Mapping[str, Any]) -> None:
    """Add the collective of ``row`` to ``found``, and the rank of its process. Problems: ``bad_event`` without a group, number,
    size or duration.
    """
    dur, number, size, rank = count(row.get("dur")), count(row.get("n")), few(row.get("size")), few(row.get("rank"))
    root = few(row.get("root"))
    group, name = text_of(row.get("group"), 64), text_of(row.get("name"), 64)
    if dur is None or number is None or size is None or not 0 < size <= MOST_RANKS or not group:
        found.problems["bad_event"] += 1
        return
    found.kept += 1
    if rank is not None and process.rank != rank:
        process = process._replace(rank=rank)
        if process not in found.processes:
            found.processes.append(process)
    later = row.get("later") is True
    found.collectives.append(
        CollectiveFact(
            process,
            row["t"],
            group,
            (),
            number,
            f"gloo:{name}",
            elements=count(row.get("elems")),
            dtype=text_of(row.get("dtype"), 32),
            started=row["t"],
            finished=UNKNOWN if later else row["t"] + dur,
            size=size,
            timed=not later,
            done=not later,
            root=root if root is not None and 0 <= root < MOST_RANKS else -1,
        )
    )
