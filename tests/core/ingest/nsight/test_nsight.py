"""Exports of Nsight Systems, a trace a process."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teller_core.data.trace import Layer, Trace, kernel_totals
from teller_core.errors import FormatError, TellerError
from teller_core.ingest.found import Found, Place
from teller_core.ingest.nsight.reader import read, sniff
from teller_core.ingest.reading import plan, read_group
from teller_core.rebuild.nest import nest
from tests.core.ingest.nsight.nsight_made import EPOCH, made, process, thread

KERNEL, RUNTIME, NVTX = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
CASES = Path(__file__).parents[3] / "data" / "nsight_sqlite"
START: dict[str, Any] = {"TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": EPOCH}]}


def call(pid: int, start: int, end: int, link: int, name: str = "cudaLaunchKernel_v7000") -> dict[str, Any]:
    return {"start": start, "end": end, "globalTid": thread(pid, pid), "correlationId": link, "nameId": name}


def kernel(pid: int, start: int, end: int, link: int, name: str = "gemm", **more: Any) -> dict[str, Any]:
    where = {"deviceId": 0, "contextId": 1, "streamId": 7, "gridX": 4, "gridY": 1, "gridZ": 1}
    block = {"blockX": 32, "blockY": 1, "blockZ": 1}
    owner = {"globalPid": process(pid), "correlationId": link}
    return {"start": start, "end": end, **owner, "demangledName": name, "shortName": name, **where, **block, **more}


def ranged(pid: int, start: int | None, end: int | None, text: str | None, **more: Any) -> dict[str, Any]:
    return {
        "start": start,
        "end": end,
        "eventType": 59,
        "globalTid": thread(pid, pid),
        "text": text,
        "domainId": 0,
        **more,
    }


def found(tmp_path: Path, tables: dict[str, Any], **more: Any) -> Found:
    path = made(tmp_path / "export.sqlite", START | tables, **more)
    said = read(path, Place())
    assert said.events == said.kept + said.other.total() + said.problems.total()
    for trace in said.traces:
        trace.check()
    return said


def names(trace: Trace) -> list[str]:
    return [trace.names[int(n)] for n in trace.name]


def arguments(trace: Trace, row: int) -> Any:
    return json.loads(trace.args[int(trace.arg[row])]) if trace.arg[row] >= 0 else None


def test_calls_launch_the_kernels_of_their_own_process_whatever_ids_the_other_uses(tmp_path: Path) -> None:
    tables = {
        RUNTIME: [call(10, 100, 110, 1), call(11, 100, 130, 1, "cuLaunchKernelEx"), call(11, 200, 210, 2)],
        KERNEL: [
            kernel(11, 140, 150, 1, deviceId=0),
            kernel(10, 150, 180, 1, deviceId=1),
            kernel(10, 190, 195, 2, deviceId=1),
        ],
    }
    first, second = found(tmp_path, tables).traces
    assert (first.origin.pid, second.origin.pid) == (11, 10)
    for trace, launch, unlaunched in ((first, "cuLaunchKernelEx", 0), (second, "cudaLaunchKernel", 1)):
        tree = nest(trace)
        below = [row for row in range(len(tree)) if tree.parent[row] >= 0]
        assert [tree.trace.names[int(tree.trace.name[tree.parent[row]])] for row in below] == [launch]
        assert tree.unlaunched == unlaunched


def test_times_count_from_1970_by_the_start_of_the_session(tmp_path: Path) -> None:
    said = found(tmp_path, {KERNEL: [kernel(10, 1, 3, 1)]})
    assert (said.clock, said.traces[0].start.tolist(), said.traces[0].dur.tolist()) == ("unix", [EPOCH + 1], [2])


def test_times_that_count_from_1970_already_are_left_alone(tmp_path: Path) -> None:
    said = found(tmp_path, {KERNEL: [kernel(10, EPOCH + 5, EPOCH + 7, 1)]})
    assert (said.clock, said.traces[0].start.tolist()) == ("unix", [EPOCH + 5])


def test_without_a_start_of_the_session_the_clock_is_local(tmp_path: Path) -> None:
    path = made(tmp_path / "export.sqlite", {KERNEL: [kernel(10, 1, 3, 1)]})
    said = read(path, Place())
    assert (said.clock, said.traces[0].origin.clock, said.traces[0].start.tolist()) == ("local", "local", [1])


def test_names_of_emit_nvtx_lose_their_ids_and_are_operators(tmp_path: Path) -> None:
    texts = ["aten::mul, op_id = 7", "MmBackward0, seq = 4, op_id = 9, sizes = [[1, 2], []]", "decode", "ncclAllReduce"]
    tables = {
        NVTX: [ranged(10, k, k + 1, text) for k, text in enumerate(texts)]
        + [ranged(10, 9, 10, None, textId="aten::t, op_id = 1")]
    }
    (trace,) = found(tmp_path, tables).traces
    assert names(trace) == ["aten::mul", "MmBackward0", "decode", "ncclAllReduce", "aten::t"]
    assert [Layer(x) for x in trace.layer] == [
        Layer.OPERATOR, Layer.OPERATOR, Layer.ENGINE, Layer.COMMUNICATION, Layer.OPERATOR,
    ]  # fmt: skip
    assert [arguments(trace, row) for row in range(3)] == [None, {"said": "sizes = [[1, 2], []]"}, None]


def test_modules_that_vllm_writes_out_are_modules(tmp_path: Path) -> None:
    text = "{'Module': 'model.layers.3.mlp', 'Inputs': [[8, 4096]]}"
    (trace,) = found(tmp_path, {NVTX: [ranged(10, 0, 5, text)]}).traces
    assert (names(trace), Layer(trace.layer[0])) == (["nn.Module: model.layers.3.mlp"], Layer.PYTHON)
    assert arguments(trace, 0) == {"said": "'Inputs': [[8, 4096]]"}


def test_marks_ranges_across_threads_domains_and_payloads(tmp_path: Path) -> None:
    rows = [
        ranged(10, 0, None, "NCCL", eventType=75, domainId=1),
        ranged(10, 1, None, "worker", eventType=39),
        ranged(10, 2, None, "here", eventType=34, uint64Value=8),
        ranged(10, 3, 9, "load", eventType=60, endGlobalTid=thread(10, 99)),
        ranged(10, 4, 8, "ncclAllGather", domainId=1, jsonText='{"Message size [bytes]": 64}'),
    ]
    said = found(tmp_path, {NVTX: rows})
    (trace,) = said.traces
    assert said.other["nvtx_name"] == 2
    assert [trace.categories[c] for c in trace.category] == ["mark", "start_end", "push_pop"]
    assert [trace.lanes[lane].thread for lane in trace.lane] == ["10", "ranges", "10"]
    assert [arguments(trace, row) for row in range(3)] == [
        {"payload": 8}, None, {"domain": "NCCL", "Message size [bytes]": 64},
    ]  # fmt: skip


def test_the_largest_communicator_tells_rank_and_world(tmp_path: Path) -> None:
    text = '{"No. of ranks": %d, "Rank": %d, "CUDA device": 0}'
    rows = [
        ranged(10, k, k + 1, "ncclCommInitRank", domainId=1, jsonText=text % pair)
        for k, pair in enumerate([(2, 1), (8, 5)])
    ]
    said = found(tmp_path, {NVTX: rows})
    assert [(trace.origin.rank, trace.origin.world) for trace in said.traces] == [(5, 8)]
    assert [process.rank for process in said.processes] == [5]


def test_a_thread_called_after_its_rank_tells_it(tmp_path: Path) -> None:
    tables = {KERNEL: [kernel(10, 1, 2, 1)], "ThreadNames": [{"nameId": "MPI Rank 3", "globalTid": thread(10, 10)}]}
    assert found(tmp_path, tables).traces[0].origin.rank == 3


def test_the_environment_tells_the_rank_of_the_only_process_on_a_device(tmp_path: Path) -> None:
    name = "PROCESS_0:ENVIRONMENT_VARIABLE"
    said = [("RANK", "3"), ("WORLD_SIZE", "4"), ("SECRET_TOKEN", "77")]
    tables = {
        "META_DATA_CAPTURE": [{"name": name, "value": f'{key}="{value}"'} for key, value in said],
        KERNEL: [kernel(10, 1, 2, 1)],
        "OSRT_API": [{"start": 1, "end": 2, "globalTid": thread(9, 9), "nameId": "poll"}],
    }
    ours, starter = found(tmp_path, tables).traces
    assert (ours.origin.pid, ours.origin.rank, ours.origin.world) == (10, 3, 4)
    assert (starter.origin.pid, starter.origin.rank) == (9, None)


def test_device_work_is_called_as_the_profiler_of_pytorch_calls_it(tmp_path: Path) -> None:
    where = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": process(10)}
    tables = {
        KERNEL: [kernel(10, 1, 2, 1, "void f<int>(int)"), kernel(10, 2, 3, 2, "ncclDevKernel_AllReduce_Sum")],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            {"start": 3, "end": 4, "copyKind": 1, "srcKind": 0, "dstKind": 2, "bytes": 64, **where}
        ],
        "CUPTI_ACTIVITY_KIND_MEMSET": [{"start": 4, "end": 5, "memKind": 2, "bytes": 8, **where}],
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [{"start": 5, "end": 6, "syncType": 3, **where}],
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [{"start": 6, "end": 9, "graphId": 12, **where}],
    }
    (trace,) = found(tmp_path, tables).traces
    told = {
        names(trace)[row]: (Layer(trace.layer[row]), trace.lanes[trace.lane[row]].thread, arguments(trace, row))
        for row in range(len(trace))
    }
    grid = {"grid": [4, 1, 1], "block": [32, 1, 1]}
    assert told == {
        "void f<int>(int)": (Layer.KERNEL, "7", grid),
        "ncclDevKernel_AllReduce_Sum": (Layer.COMMUNICATION, "7", grid),
        "Memcpy HtoD (Pageable -> Device)": (Layer.KERNEL, "7", {"bytes": 64}),
        "Memset (Device)": (Layer.KERNEL, "7", {"bytes": 8}),
        "Stream Sync": (Layer.RUNTIME, "7 syncs", None),
        "CUDA graph 12": (Layer.KERNEL, "7", None),
    }
    assert kernel_totals(trace) == (2, 2)


def test_streams_of_several_contexts_of_one_device_are_lanes_of_their_own(tmp_path: Path) -> None:
    (trace,) = found(tmp_path, {KERNEL: [kernel(10, 1, 2, 1), kernel(10, 1, 2, 2, contextId=2)]}).traces
    assert sorted(lane.thread for lane in trace.lanes) == ["1/7", "2/7"]


def test_rows_that_cannot_be_kept_are_counted_by_what_is_wrong(tmp_path: Path) -> None:
    tables = {
        KERNEL: [
            kernel(10, 5, 4, 1), kernel(10, 2**62, 2**62 + 1, 1), kernel(10, 1, 2, 1) | {"globalPid": None},
            kernel(10, 1, 2, 1) | {"start": None}, kernel(10, 1, 2, 1) | {"end": 1.5}, kernel(10, 7, 8, 9),
        ],
        NVTX: [
            ranged(10, 1, None, "open"), ranged(10, 1, None, "open", eventType=60), ranged(10, 1, 2, "done"),
            ranged(10, 9, 2, "backwards"),
        ],
    }  # fmt: skip
    said = found(tmp_path, tables)
    assert said.problems == {
        "negative_dur": 2, "time_over_int64": 1, "no_process": 1, "no_ts": 1, "no_dur": 1, "unmatched_push": 1,
        "unmatched_range": 1,
    }  # fmt: skip
    assert said.kept == 2


def test_what_the_profiler_lost_is_a_problem_of_the_file(tmp_path: Path) -> None:
    said = [
        (3, "CUPTI buffers overflowed, 12 events were dropped."),
        (3, "Cannot attach."),
        (1, "Not dropped."),
        (2, "Old driver."),
    ]
    tables = {
        "DIAGNOSTIC_EVENT": [{"severity": severity, "text": text} for severity, text in said],
        KERNEL: [kernel(10, 1, 2, 1)],
    }
    made_of = found(tmp_path, tables)
    assert made_of.problems == {"events_lost_by_profiler": 1, "profiler_error": 1}
    assert made_of.other["profiler_message"] == 2


def test_tables_nobody_knows_are_ranges_where_they_look_like_ranges_and_counted_otherwise(tmp_path: Path) -> None:
    extra = f"""CREATE TABLE NEW_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);
        INSERT INTO NEW_API VALUES (1, 2, {thread(10, 10)}, 3);
        CREATE TABLE NEW_COUNTERS (timestamp INTEGER, value INTEGER); INSERT INTO NEW_COUNTERS VALUES (1, 2), (2, 3);"""
    said = found(tmp_path, {RUNTIME: [call(10, 1, 5, 1)], "SCHED_EVENTS": [{"start": 1, "cpu": 2}]}, extra=extra)
    assert said.kept == 2
    assert said.other == {"unknown_table": 2, "scheduling": 1, "string": 1, "metadata": 1}
    assert {said.traces[0].categories[c] for c in said.traces[0].category} == {"cuda_runtime", "new_api"}


def test_nothing_of_a_database_is_run_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    extra = """CREATE TABLE log (x); CREATE TRIGGER t AFTER INSERT ON log BEGIN SELECT RAISE(ABORT, 'run'); END;
        ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO hidden;
        CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start FROM n)
        SELECT start, start AS end, 0 AS globalPid FROM n;"""
    path = made(tmp_path / "export.sqlite", {KERNEL: [kernel(10, 1, 2, 1)], RUNTIME: [call(10, 1, 5, 1)]}, extra=extra)
    before = path.read_bytes()
    assert read(path, Place()).kept == 1
    assert (sorted(tmp_path.iterdir()), path.read_bytes()) == ([path], before)


@pytest.mark.parametrize("packed", [gzip.compress, zstandard.compress])
def test_a_compressed_export_reads_as_the_plain_one(tmp_path: Path, packed: Any) -> None:
    path = made(tmp_path / "export.sqlite", START | {KERNEL: [kernel(10, 1, 2, 1)]})
    other = tmp_path / "packed"
    other.write_bytes(packed(path.read_bytes()))
    assert read(other, Place()).traces[0].start.tolist() == read(path, Place()).traces[0].start.tolist()
    other.write_bytes(packed(path.read_bytes())[:-40])
    with pytest.raises(TellerError):
        read(other, Place())


def test_a_database_of_something_else_is_refused_in_one_line(tmp_path: Path) -> None:
    small, large = tmp_path / "small.db", tmp_path / "large.db"
    many = "".join(f"CREATE TABLE some_table_with_a_long_name_{k} (x);" for k in range(60))
    for path, extra in ((small, ""), (large, many)):
        made(path, {}, extra=f"{extra} DROP TABLE StringIds; DROP TABLE TARGET_INFO_SYSTEM_ENV; VACUUM")
        with pytest.raises(FormatError) as error:
            read_group(plan([path])[0])
        assert "\n" not in str(error.value)
    assert not sniff(small.read_bytes()[: 1 << 16])


def test_both_processes_of_a_file_are_ranks_of_the_capture(tmp_path: Path) -> None:
    path = made(tmp_path / "export.sqlite", START | {KERNEL: [kernel(10, 1, 2, 1), kernel(11, 1, 2, 1, deviceId=1)]})
    recording = read_group(plan([path])[0])
    assert [(file, trace.origin.pid) for file, trace in recording.traces] == [(0, 10), (0, 11)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(0, 2))
@settings(
    max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
def test_a_damaged_export_is_refused_in_one_line_or_accounted_for(
    tmp_path: Path, seed: int, bytes_: int, which: int
) -> None:
    rng = np.random.default_rng(seed)
    content = bytearray((sorted(CASES.iterdir())[which] / "input.db").read_bytes())
    for at in rng.integers(100, len(content), bytes_).tolist():
        content[at] = int(rng.integers(0, 256))
    bad = tmp_path / "bad.db"
    bad.write_bytes(content)
    try:
        said = read(bad, Place())
    except TellerError as error:
        assert "\n" not in str(error)
    else:
        assert said.events == said.kept + said.other.total() + said.problems.total()
        for trace in said.traces:
            nest(trace).check()
