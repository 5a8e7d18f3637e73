"""A long Nsight Systems export: an engine's steps on one GPU, with the tables and columns of schema 3.16.

    python tests/bench/generate_nsight.py OUT.sqlite [--kernels 1000000]

Each step is a range that holds a range a layer, which hold a range an operator with one launch in it; it ends with a
synchronization and a copy. So a kernel comes with one row of the runtime and 1.1 of NVTX.
"""

import argparse
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

PID = 4242
PROCESS = PID << 24
THREAD = PROCESS | PID
LAYERS = 32
OPERATORS = {
    "rms_norm": "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16 *, const c10::BFloat16 *, float, int, int)",
    "qkv_proj": "nvjet_tst_128x64_64x10_4x1_v_bz_TNT",
    "rope": "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(const long *, T1 *, T1 *, const T1 *, int, long, long)",
    "cache": "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(...)",
    "attention": "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(flash::Flash_fwd_params)",
    "o_proj": "nvjet_tst_64x64_64x16_2x1_v_bz_splitK_TNT",
    "rms_norm_2": "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(...)",
    "gate_up_proj": "nvjet_tst_192x128_64x6_2x1_v_bz_TNT",
    "silu_and_mul": "void vllm::act_and_mul_kernel<c10::BFloat16, vllm::silu_kernel>(...)",
    "down_proj": "nvjet_tst_64x96_64x12_4x1_v_bz_TNT",
}
CALLS = ("cudaLaunchKernelExC_v11060", "cudaStreamSynchronize_v3020", "cudaMemcpyAsync_v3020")
PER_STEP = LAYERS * len(OPERATORS)
STEPS_AT_ONCE = 64
TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT",
    "TARGET_INFO_GPU": "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, totalMemory INTEGER,"
    " memoryBandwidth INTEGER, smCount INTEGER, uuid TEXT, chipName TEXT, cuDevice INTEGER, computeMajor INTEGER,"
    " computeMinor INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER NOT NULL, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT NOT NULL,"
    " numMultiprocessors INTEGER NOT NULL",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "ENUM_NSYS_EVENT_TYPE": "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,"
    " color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER,"
    " uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL,"
    " jsonTextId INTEGER, jsonText TEXT, binaryData TEXT",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,"
    " globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,"
    " globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,"
    " launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,"
    " gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,"
    " blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,"
    " localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL,"
    " sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,"
    " globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER,"
    " dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER,"
    " migrationCause INTEGER, graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER",
}


def strings() -> dict[str, int]:
    """The id of each name."""
    layers = [f"layer_{k}" for k in range(LAYERS)]
    short = [name.partition("<")[0].rpartition("::")[2] for name in OPERATORS.values()]
    names = dict.fromkeys([*OPERATORS.values(), *short, *OPERATORS, *layers, *CALLS, "python3"])
    return {name: k + 1 for k, name in enumerate(names)}


def steps(first: int, count: int, time: int, rng: np.random.Generator) -> tuple[dict[str, list[Any]], int]:
    """The rows of ``count`` steps by table, and when the next one may begin."""
    ids = strings()
    kernel_ids = [ids[name] for name in OPERATORS.values()]
    short_ids = [ids[name.partition("<")[0].rpartition("::")[2]] for name in OPERATORS.values()]
    rows: dict[str, list[Any]] = {"runtime": [], "kernel": [], "nvtx": [], "memcpy": []}
    gpu = time
    for step in range(first, first + count):
        link = step * (PER_STEP + 2) + 1
        took = rng.integers(3000, 6000, PER_STEP).tolist()
        ran = rng.integers(2000, 40000, PER_STEP).tolist()
        begin, inner = time, len(rows["nvtx"])
        rows["nvtx"].append(None)
        for layer in range(LAYERS):
            layer_begin, place = time, len(rows["nvtx"])
            rows["nvtx"].append(None)
            time += 500
            for k, operator in enumerate(OPERATORS):
                n = layer * len(OPERATORS) + k
                call = time + 800
                done = call + took[n]
                rows["runtime"].append((call, done, 0, THREAD, link, ids[CALLS[0]], 0, None))
                gpu = max(gpu, done + 1500)
                rows["kernel"].append(_kernel(gpu, gpu + ran[n], link, kernel_ids[k], short_ids[k]))
                rows["nvtx"].append(_range(time, done + 400, None, ids[operator]))
                gpu, link, time = gpu + ran[n] + 700, link + 1, done + 600
            rows["nvtx"][place] = _range(layer_begin, time, None, ids[f"layer_{layer}"])
            time += 300
        ended = max(time + 2000, gpu + 1000)
        rows["runtime"].append((time, ended, 0, THREAD, link, ids[CALLS[1]], 0, None))
        rows["runtime"].append((ended, ended + 4000, 0, THREAD, link + 1, ids[CALLS[2]], 0, None))
        rows["memcpy"].append(
            (ended + 500, ended + 2500, 0, 1, None, 7, link + 1, PROCESS, 4096, 2, None, 2, 1, *[None] * 7, 1)
        )
        time, gpu = ended + 4000, ended + 7000
        name = f"execute_context_0(0)_generation_{8 + step % 24}({8 + step % 24})"
        rows["nvtx"][inner] = _range(begin, time, name, None)
        time += 20000
    return rows, time


def _range(begin: int, end: int, text: str | None, text_id: int | None) -> tuple[Any, ...]:
    return (begin, end, 59, None, None, None, text, THREAD, None, text_id, 0, *[None] * 9)


def _kernel(begin: int, end: int, link: int, name: int, short: int) -> tuple[Any, ...]:
    shape = (132, 1, 1, 128, 1, 1, 0, 49152, 0, 0, link, 102400, None, 0)
    return (begin, end, 0, 1, None, 7, link, PROCESS, name, short, name, 0, 0, 64, *shape)


def generate(out: Path, kernels: int) -> dict[str, int]:
    """Write ``out``; returns how many rows each table got."""
    out.unlink(missing_ok=True)
    base = sqlite3.connect(out, isolation_level=None)
    base.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE")
    for name, columns in TABLES.items():
        base.execute(f"CREATE TABLE {name} ({columns})")
    rng, time, count = np.random.default_rng(0), 1_000_000_000, -(-kernels // PER_STEP)
    written = dict.fromkeys(("kernel", "runtime", "nvtx", "memcpy"), 0)
    tables = {"nvtx": "NVTX_EVENTS", **{k: f"CUPTI_ACTIVITY_KIND_{k.upper()}" for k in written if k != "nvtx"}}
    base.execute("BEGIN")
    for first in range(0, count, STEPS_AT_ONCE):
        rows, time = steps(first, min(STEPS_AT_ONCE, count - first), time, rng)
        for kind, some in rows.items():
            _insert(base, tables[kind], some)
            written[kind] += len(some)
    ids = strings()
    _insert(base, "StringIds", [(k, name) for name, k in ids.items()])
    _insert(base, "PROCESSES", [(PROCESS, PID, "python3")])
    _insert(base, "ThreadNames", [(ids["python3"], 0, THREAD)])
    _insert(base, "META_DATA_EXPORT", [("EXPORT_SCHEMA_VERSION", "3.16.2"), ("EXPORT_PRODUCT_VERSION", "2025.1.1")])
    _insert(base, "TARGET_INFO_SYSTEM_ENV", [(0, "Local (CLI)", "Hostname", 619, "node")])
    gpu = (0, 0, "NVIDIA H200", "0000:19:00.0", 150754820096, 4915200000000, 132, "GPU-0", "GH100", 0, 9, 0)
    _insert(base, "TARGET_INFO_GPU", [gpu])
    _insert(base, "TARGET_INFO_CUDA_DEVICE", [(0, 0, PID, "GPU-0", 132)])
    _insert(base, "TARGET_INFO_SESSION_START_TIME", [(1775078550000000000, "", "")])
    _insert(base, "ENUM_NSYS_EVENT_TYPE", [(59, "NvtxPushPopRange", "NVTX Push/Pop Range")])
    base.execute("COMMIT")
    base.close()
    return written


def _insert(base: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    base.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    chosen = parser.parse_args()
    sys.stdout.write(f"{chosen.out}: {generate(chosen.out, chosen.kernels)}\n")


if __name__ == "__main__":
    main()
