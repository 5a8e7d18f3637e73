"""What happened, as PyTorch's profiler writes it: one trace a rank, of the steps inside a window."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.core.incidents.records import WORKER, collectives
from tests.core.incidents.world import Step, Trouble, World, ns

US = 1_000
LAYERS, STREAM = 4, 7
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
ATTENTION = "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>"
MLP = "nvjet_tst_128x152_64x4_1x2_h_bz_coopA_TNT"
DEVICE = (
    (NORM, "aten::native_layer_norm", 1),
    (GEMM, "aten::mm", 4),
    (ATTENTION, "_vllm_fa3_C::fwd", 3),
    (MLP, "aten::mm", 6),
)
"""Kernels of a layer, the operators that launch them, and their shares of its time."""
HOST = (("aten::layer_norm", 1), ("aten::addmm", 5), ("aten::scaled_dot_product_attention", 3), ("aten::linear", 6),
        ("aten::silu", 1), ("aten::embedding", 1))  # fmt: skip
"""Operators of a layer where the model is computed on the host."""
STREAMING = ("aten::addmm", "aten::linear", "aten::embedding")
"""Those of them that read weights: what they take is the memory's speed."""
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


class _Events:
    def __init__(self, pid: int) -> None:
        self.pid, self.rows, self.link = pid, list[dict[str, Any]](), 100

    def add(self, cat: str, name: str, start: int, dur: int, tid: int, **args: Any) -> None:
        base = {"ph": "X", "cat": cat, "name": name, "pid": 0 if tid == STREAM else self.pid, "tid": tid}
        self.rows.append(base | {"ts": (start - ns(0)) / 1e3, "dur": max(dur, 1) / 1e3, "args": args})

    def host(self, name: str, start: int, dur: int, cat: str = "cpu_op", **args: Any) -> None:
        self.add(cat, name, start, dur, self.pid, **args)

    def kernel(self, name: str, start: int, dur: int, link: int, cat: str = "kernel", **args: Any) -> None:
        self.add(cat, name, start, dur, STREAM, stream=STREAM, device=0, correlation=link, **args)

    def next(self) -> int:
        self.link += 1
        return self.link


def profile(world: World, folder: Path, told: Mapping[str, Any]) -> None:
    """torch-PID-NS.json of each rank, from ``begin`` to ``end`` ms. ``device``: whether the model runs on one."""
    begin, end = ns(told.get("begin", 0)), ns(told.get("end", 1e7))
    for rank in range(world.service.ranks):
        events = _Events(WORKER + rank)
        rng = np.random.default_rng(11 + rank)
        for number, step in enumerate(world.steps):
            if begin <= step.begin and step.stop <= end:
                name = (
                    f"execute_context_{step.prefills}({step.context})_generation_{step.generation}({step.generation})"
                )
                events.host(name, step.begin + 60 * US, step.stop - step.begin - 120 * US, "user_annotation")
                if world.service.ranks > 1:
                    _ranked(events, world, step, rank, number)
                elif told.get("device", True):
                    _Device(events, step, told, rng).run()
                else:
                    _on_host(events, step, rng)
        about = {"rank": rank, "world_size": world.service.ranks, "backend": "nccl", "pg_count": 1}
        about |= {"pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": list(range(world.service.ranks))}]}
        devices = [{"id": 0, "name": told.get("gpu", "NVIDIA H100 80GB HBM3")}] if told.get("device", True) else []
        page = {"schemaVersion": 1, "deviceProperties": devices, "distributedInfo": about, "baseTimeNanoseconds": ns(0)}
        page |= {"displayTimeUnit": "ms", "traceEvents": sorted(events.rows, key=lambda row: (row["ts"], -row["dur"]))}
        (folder / f"torch-{WORKER + rank}-{begin}.json").write_text(json.dumps(page), "utf-8")


class _Device:
    """One step of a host that runs ahead of its device, and what makes it wait."""

    def __init__(self, events: _Events, step: Step, told: Mapping[str, Any], rng: np.random.Generator) -> None:
        self.events, self.step, self.told, self.rng = events, step, told, rng
        self.now = step.begin + 80 * US
        self.free = self.now
        self.extra = step.extra

    def _ns(self, *kinds: str) -> int:
        return sum(ns for trouble, ns in self.extra if trouble.kind in kinds)

    def run(self) -> None:
        mlp = self.told.get("mlp", MLP)
        shares = [(mlp if kernel == MLP else kernel, op, share) for _ in range(LAYERS) for kernel, op, share in DEVICE]
        whole = sum(share for *_, share in shares)
        busy = round(0.86 * self.step.base) * self.told.get("busy", 100) // 100
        lasts = [round(busy * share / whole * float(np.exp(self.rng.normal(0, 0.02)))) for *_, share in shares]
        lasts = self._stretched([name for name, *_ in shares], lasts)
        if host := self._ns("host"):
            self.events.host("schedule_and_prepare", self.now, host, "user_annotation")
            for n in range(8):
                self.events.host("aten::index_select", self.now + n * host // 8, host // 8 - 2 * US)
            self.now += host
        graph = self.step.generation and not self.step.prefills and len(self.step.served) <= self.told.get("graphs", 0)
        link = self.events.next()
        if graph:
            self.events.host("cudaGraphLaunch", self.now, 60 * US, "cuda_runtime", correlation=link)
            self.now += 60 * US
        for n, ((kernel, op, _), dur) in enumerate(zip(shares, lasts, strict=True)):
            self._one(kernel, op, dur, link if graph else 0, len(shares))
            if n % len(DEVICE) == len(DEVICE) - 1:
                self._blocked(n // len(DEVICE))
        self._end()

    def _one(self, kernel: str, op: str, dur: int, graph: int, count: int) -> None:
        if graph:
            begin, link = max(self.free, self.now), graph
        else:
            cost = 12 * US + self._ns("launches") // count
            link = self.events.next()
            self.events.host(op, self.now, cost)
            self.events.host("cudaLaunchKernel", self.now + cost // 2, 4 * US, "cuda_runtime", correlation=link)
            begin = max(self.free, self.now + cost // 2 + 5 * US)
            self.now += cost + US
        if not graph or self.told.get("kernels", True):
            self.events.kernel(kernel, begin, dur, link)
        self.free = begin + dur

    def _stretched(self, names: list[str], lasts: list[int]) -> list[int]:
        """What each kernel takes where something slows them: one of them, all of them alike, or some of them."""
        for trouble, extra in self.extra:
            if trouble.kind == "kernel":
                mine = [i for i, name in enumerate(names) if name.startswith(trouble.name)]
            elif trouble.kind == "clock":
                mine = list(range(len(names)))
            elif trouble.kind == "neighbor":
                mine = [i for i in range(len(names)) if self.rng.random() < 0.4] or [0]
            else:
                continue
            whole = sum(lasts[i] for i in mine)
            for i in mine:
                lasts[i] += extra * lasts[i] // whole
        return lasts

    def _blocked(self, layer: int) -> None:
        """A call in the middle of the step that waits for the device, after which the host begins to launch again."""
        for trouble, extra in self.extra:
            part = extra // LAYERS
            if trouble.kind == "sync":
                self._synchronized(part)
            elif trouble.kind == "copy":
                self._copied(trouble, part)
            elif trouble.kind == "memory":
                name = ("cudaMalloc", "cudaFree") if not trouble.name else (trouble.name, trouble.name)
                self.now = max(self.now, self.free)
                self.events.host("aten::empty", self.now, part)
                self.events.host(
                    name[layer % 2], self.now + US, part - 2 * US, "cuda_runtime", correlation=self.events.next()
                )
                self.now += part

    def _synchronized(self, part: int) -> None:
        end = max(self.free, self.now) + 8 * US
        self.events.host("aten::item", self.now, end - self.now + 4 * US)
        self.events.host("aten::_local_scalar_dense", self.now + US, end - self.now + 2 * US)
        link = self.events.next()
        self.events.host("cudaMemcpyAsync", self.now + 2 * US, 4 * US, "cuda_runtime", correlation=link)
        self.events.kernel("Memcpy DtoH (Device -> Pinned)", self.free + US, 2 * US, link, "gpu_memcpy", bytes=8)
        wait = self.events.next()
        self.events.host(
            "cudaStreamSynchronize", self.now + 7 * US, end - self.now - 7 * US, "cuda_runtime", correlation=wait
        )
        self.now = end + part
        self.free = max(self.free, end)

    def _copied(self, trouble: Trouble, part: int) -> None:
        begin = max(self.free, self.now + 4 * US)
        kind = trouble.name or "Memcpy HtoD (Pageable -> Device)"
        blocking = "Pageable" in kind
        link = self.events.next()
        long = begin + part - self.now if blocking else 6 * US
        self.events.host("aten::copy_", self.now, long + 2 * US)
        self.events.host("cudaMemcpyAsync", self.now + US, long, "cuda_runtime", correlation=link)
        self.events.kernel(kind, begin, part - 2 * US, link, "gpu_memcpy", bytes=part // 4)
        self.now += long + 3 * US
        self.free = begin + part

    def _end(self) -> None:
        """The tokens are read back: the host waits for what is queued already."""
        link = self.events.next()
        end = max(self.free, self.now + 10 * US) + 10 * US
        self.events.host("cudaMemcpyAsync", self.now, 5 * US, "cuda_runtime", correlation=link)
        self.events.kernel("Memcpy DtoH (Device -> Pinned)", end - 8 * US, 3 * US, link, "gpu_memcpy", bytes=64)
        wait = self.events.next()
        self.events.host(
            "cudaStreamSynchronize", self.now + 7 * US, end - self.now - 7 * US, "cuda_runtime", correlation=wait
        )


def _on_host(events: _Events, step: Step, rng: np.random.Generator) -> None:
    """A step of a model that the host computes."""
    parts = [(name, share) for _ in range(LAYERS) for name, share in HOST]
    whole, budget = sum(share for _, share in parts), round(0.9 * step.base)
    lasts = [round(budget * share / whole * float(np.exp(rng.normal(0, 0.03)))) for _, share in parts]
    gap = 0
    for trouble, extra in step.extra:
        if trouble.kind == "operator":
            mine = [i for i, (name, _) in enumerate(parts) if name == trouble.name]
        elif trouble.kind == "bandwidth":
            mine = [i for i, (name, _) in enumerate(parts) if name in STREAMING]
        elif trouble.kind in ("starved", "frequency"):
            mine = list(range(len(parts)))
        else:
            gap += extra
            continue
        total = sum(lasts[i] for i in mine)
        for i in mine:
            lasts[i] += extra * lasts[i] // total
    now = step.begin + 80 * US
    rest = (step.base - budget) // (len(parts) + 1)
    for n, ((name, _), dur) in enumerate(zip(parts, lasts, strict=True)):
        now += rest - 8 * US + (gap if n == len(parts) // 2 else 0)
        events.host(name, now, dur)
        now += dur


def _ranked(events: _Events, world: World, step: Step, rank: int, number: int) -> None:
    """A step of one of several ranks: between two collectives attention, then experts of which this rank may have more to do."""
    now = step.begin + 80 * US
    for n, (start, dur) in enumerate(collectives(world, step, rank)):
        first, later = events.next(), events.next()
        attention = round((step.base - 200_000) / LAYERS * 0.4)
        host = step.begin + 90 * US + n * 60 * US
        events.host("_vllm_fa3_C::fwd", host, 10 * US)
        events.host("cudaLaunchKernel", host + 2 * US, 4 * US, "cuda_runtime", correlation=first)
        events.host("vllm::moe_forward", host + 12 * US, 16 * US)
        events.host("cudaLaunchKernel", host + 15 * US, 4 * US, "cuda_runtime", correlation=later)
        events.kernel(ATTENTION, now, attention, first)
        events.kernel("fused_moe_kernel", now + attention + US, max(start - now - attention - 2 * US, US), later)
        link = events.next()
        about = {"Collective name": "allreduce", "Process Group Name": "0", "Process Group Description": "default_pg",
                 "Group size": world.service.ranks, "In msg nelems": 4096, "dtype": "BFloat16",
                 "Seq": number * LAYERS + n}  # fmt: skip
        events.host("nccl:all_reduce", host + 30 * US, 20 * US)
        events.host("record_param_comms", host + 31 * US, 15 * US, **about)
        events.host("cudaLaunchKernel", host + 35 * US, 4 * US, "cuda_runtime", correlation=link)
        events.kernel(ALLREDUCE, start, dur, link, **about)
        now = start + dur
    wait = events.next()
    events.host(
        "cudaStreamSynchronize", step.begin + 400 * US, now - step.begin - 395 * US, "cuda_runtime", correlation=wait
    )
