"""Dumps of a flight recorder, made from the documented shape of its versions: for the data tests and for those who did not come.

``python -m tests.core.ingest.nccl.flight_dumps`` writes the pickles of the data tests anew.
"""

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[3] / "data" / "flight_recorder"
START = 1_758_610_505_000_000_000
MS = 1_000_000


def entry(
    group: str,
    sequence: int,
    at_ms: float,
    name: str = "nccl:all_reduce",
    *,
    sizes: Sequence[Sequence[int]] = ((4, 8),),
    dtype: str = "BFloat16",
    done: bool = False,
    pg_id: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """One entry of version 2.9."""
    pair = name.partition(":")[2].split(" ")[0] in ("send", "recv")
    return {
        "record_id": sequence,
        "pg_id": pg_id,
        "process_group": (group, f"group {group}"),
        "collective_seq_id": 0 if pair else sequence,
        "p2p_seq_id": sequence if pair else 0,
        "op_id": sequence,
        "profiling_name": name,
        "time_created_ns": START + round(at_ms * MS),
        "input_sizes": [list(shape) for shape in sizes],
        "input_dtypes": [dtype],
        "output_sizes": [list(shape) for shape in sizes],
        "output_dtypes": [dtype],
        "state": "completed" if done else "scheduled",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": START + round(at_ms * MS) + MS if done else None,
        "retired": done,
        "timeout_ms": 180_000,
        "is_p2p": pair,
        **more,
    }


def dump(
    groups: Mapping[str, Sequence[int]],
    entries: Sequence[Mapping[str, Any]],
    status: Mapping[str, tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """A dump of version 2.9. ``status``: last called and last ended, by the process's own number of the group."""
    made: dict[str, Any] = {
        "version": "2.9",
        "pg_config": {
            name: {"name": name, "desc": f"group {name}", "ranks": str(list(members))}
            for name, members in groups.items()
        },
        "nccl_version": "2.27.3",
        "entries": [dict(one) for one in entries],
    }
    if status is not None:
        made["pg_status"] = {
            number: {
                "last_enqueued_collective": called,
                "last_started_collective": -1,
                "last_completed_collective": ended,
            }
            for number, (called, ended) in status.items()
        }
    return made


def _cases() -> dict[str, bytes]:
    pair = entry("5", 7, 2, "nccl:send 0->1", sizes=[[16]], pg_id=2)
    pending = [entry("0", 40, 0), pair, entry("0", 41, 3, "nccl:_all_gather_base", sizes=[[2, 3], [5]])]
    bad = entry("0", 42, 4) | {"time_created_ns": None}
    frames = [
        {"name": "all_reduce", "filename": "/site-packages/torch/distributed/distributed_c10d.py", "line": 2501},
        {"name": "forward", "filename": "/app/model/layers.py", "line": 88},
    ]
    old = entry("tp", 3, 1, done=True, duration_ms=1.25, frames=frames)
    lists = dump({"tp": [0, 1]}, [old])
    lists["version"], lists["pg_config"]["tp"]["ranks"] = "2.2", [0, 1]
    first = {
        key: value
        for key, value in entry("", 9, 5, done=True).items()
        if key not in ("process_group", "collective_seq_id", "p2p_seq_id", "is_p2p", "pg_id")
    }
    of_groups = dump({"0": [2, 3], "5": [1, 3], "71": [3]}, [*pending, bad], {"0": (41, 39), "2": (7, 6), "9": (4, 4)})
    return {
        "version_2_9_pending/input._dump_8": pickle.dumps(of_groups, protocol=2),
        "version_2_9_no_entries/input.nccl_trace_rank_5": pickle.dumps(dump({"0": [4, 5]}, [], {"0": (12, 12)}), 2),
        "version_2_2_frames/input.comm_lib_trace_rank_1": pickle.dumps(lists, protocol=4),
        "version_1_list/input.rank_6": pickle.dumps([first | {"pg_id": 0, "seq_id": 9}], protocol=2),
    }


if __name__ == "__main__":
    for name, data in _cases().items():
        (DATA / name).parent.mkdir(parents=True, exist_ok=True)
        (DATA / name).write_bytes(data)
