"""What the recorder costs a service, part by part, without an engine: three processes that call what vLLM's processes call.

A front end (an event loop, the stat logger), a scheduler and a worker, each with its hooks, do a hundred steps a second of
eight requests; four requests come a second. Between two calls each works for a while over memory that is larger than
the caches, as an engine does. Their parts count their own processor time, and so does the sampling thread, so the
figures hold on a machine that others use as well; of ``--rounds`` runs the smallest is printed.

Run: python tests/bench/recorder_bench.py. Fifteen seconds a round.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from teller_core.collect.environment import SHIM
from teller_core.collect.sampler import INTERVAL_S, Sampler
from teller_core.collect.segments import Segments

PLUGIN = SHIM.parent / "plugin"
SECONDS, START_S = 12.0, 3.0
ROLES = ("front", "scheduler", "worker")
FILES = {
    "vllm/__init__.py": '__version__ = "0.32.0"\n',
    "vllm/v1/core/sched/scheduler.py": """
class Scheduler:
    current_step, connector = 0, None
    def __init__(self): self.requests = {}
    def get_request_counts(self): return len(self.requests), 0
    def get_kv_cache_usage(self): return 0.515625
    def add_request(self, request): self.requests[request.request_id] = request
    def schedule(self): self.current_step += 1; return self.next
    def update_from_output(self, scheduler_output, model_runner_output): return self.came
    def _preempt_request(self, request, timestamp, drop_stale_output=False): pass
    def finish_requests(self, request_ids, finished_status): return []
""",
    "vllm/v1/worker/gpu_worker.py": """
class Worker:
    def execute_model(self, scheduler_output): return None
    def sample_tokens(self, grammar_output): return 1
""",
    "vllm/v1/engine/async_llm.py": """
class AsyncLLM:
    async def generate(self, prompt, sampling_params, request_id): await self.add_request(request_id, prompt, None)
    async def add_request(self, request_id, prompt, params):
        self._run_output_handler()
        self.processor.add_request(self.made(request_id))
    def _run_output_handler(self): pass
""",
    "vllm/v1/engine/output_processor.py": """
class OutputProcessor:
    def add_request(self, request): pass
    def process_outputs(self, engine_core_outputs): return []
    def _update_stats_from_finished(self, state, reason, stats): pass
    def abort_requests(self, ids, internal): return list(ids)
""",
    "vllm/v1/metrics/loggers.py": "class StatLoggerBase: pass\n",
}
PROGRAM = """
import asyncio, subprocess, sys, time
from types import SimpleNamespace as Made
role, code, others = sys.argv[1], sys.argv[2], sys.argv[3:]
children = [subprocess.Popen([sys.executable, "-c", code, other, code]) for other in others]
import teller_shim_cost
import teller_shim_wrap
teller_shim_cost.ODD = teller_shim_wrap.ODD = 11
sys.modules["teller_shim_process"].REPORT_S = 2.0
STEP, MEMORY, AT_ONCE, ARRIVALS = 0.01, bytearray(64 << 20), 8, 4
names = ["cmpl-8f14e45fceea167a5a36dedd4bea2543-%06d-0a1b2c3d" % number for number in range(4096)]

def work():
    end = time.perf_counter() + 0.0008
    at = 0
    while time.perf_counter() < end:
        sum(MEMORY[at : at + (1 << 16) : 64])
        at = (at + (1 << 16)) % len(MEMORY)

def here(step):
    newest = step * ARRIVALS * STEP
    return names[int(newest) % 4000 : int(newest) % 4000 + AT_ONCE]

def steps(call):
    due, step = time.perf_counter(), 0
    while True:
        work()
        call(step, (step + 1) * ARRIVALS * STEP % 1 < step * ARRIVALS * STEP % 1)
        work()
        step += 1
        due = max(due + STEP, time.perf_counter())
        time.sleep(max(0.0, due - time.perf_counter()))

def schedule():
    from vllm.v1.core.sched.scheduler import Scheduler
    engine = Scheduler()
    request = dict(num_prompt_tokens=120, max_tokens=64, num_preemptions=0, num_stale_output_tokens=0,
                   prefill_stats=Made(num_local_cached_tokens=16, num_external_cached_tokens=0))
    def call(step, arrives):
        now = here(step)
        for name in now:
            if name not in engine.requests: engine.add_request(Made(request_id=name, **request))
        new = [Made(req_id=now[-1], num_computed_tokens=16)] if arrives else []
        engine.next = Made(scheduled_new_reqs=new, preempted_req_ids=None, finished_req_ids=set(),
            scheduled_cached_reqs=Made(req_ids=now, num_computed_tokens=[150] * len(now), resumed_req_ids=set()),
            num_scheduled_tokens=dict.fromkeys(now, 1), scheduled_spec_decode_tokens={})
        outputs = [Made(request_id=name, new_token_ids=[5], finish_reason=None) for name in now]
        if arrives: outputs[0].finish_reason = Made(name="LENGTH")
        engine.came = {0: Made(outputs=outputs)}
        decision = engine.schedule()
        work()
        engine.update_from_output(decision, Made(sampled_token_ids=None))
        if arrives: engine.requests.pop(now[0])
    steps(call)

def run():
    from vllm.v1.worker.gpu_worker import Worker
    worker = Worker()
    def call(step, arrives):
        worker.execute_model(Made(_teller_step=step, num_scheduled_tokens=dict.fromkeys(here(step), 1)))
        work()
        worker.sample_tokens(None)
    steps(call)

def serve():
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.engine.output_processor import OutputProcessor
    from teller_stats import TellerStats
    engine, processor, stats = AsyncLLM(), OutputProcessor(), TellerStats(Made())
    engine.processor = processor
    Counts, Prefix, Iteration, Prompt, Finished = (type(name, (Made,), {}) for name in "CPITF")
    engine.made = lambda name: Made(request_id=name + "-0a1b2c3d", external_req_id=name, prompt_token_ids=[1] * 120)
    async def main():
        due, step = time.perf_counter(), 0
        while True:
            now, arrives = here(step), (step + 1) * ARRIVALS * STEP % 1 < step * ARRIVALS * STEP % 1
            work()
            if arrives:
                await engine.generate("text", None, now[-1])
                state = Made(request_id=now[0], external_req_id=now[0], parent_req=None, num_cached_tokens=16,
                             detokenizer=Made(num_output_tokens=lambda: 64))
                processor._update_stats_from_finished(state, Made(name="LENGTH"), None)
            outputs = [Made(request_id=name, prefill_stats=None, new_token_ids=[5]) for name in now]
            if arrives: outputs[-1].prefill_stats = Made()
            processor.process_outputs(outputs)
            work()
            finished = [Finished(request_id=now[0], e2e_latency=1.25, queued_time=0.001, prefill_time=0.03, decode_time=1.2,
                inference_time=1.23, num_prompt_tokens=120, num_generation_tokens=64, num_cached_tokens=16,
                num_preemptions=0, finish_reason="length")] if arrives else []
            stats.record(Counts(num_running_reqs=8, num_waiting_reqs=0, num_skipped_waiting_reqs=0, kv_cache_usage=0.515625,
                    prefix_cache_stats=Prefix(queries=0, hits=0), spec_decoding_stats=None, iteration_details=None),
                Iteration(iteration_timestamp=time.time(), num_generation_tokens=8, num_preempted_reqs=0,
                    time_to_first_tokens_iter=[0.031] * arrives,
                    prompt_token_stats=Prompt(total=0, computed=0, local_cache_hit=0, external_kv_transfer=0),
                    inter_token_latencies_iter=[0.01012345678] * 8, finished_requests=finished))
            step += 1
            due = max(due + STEP, time.perf_counter())
            await asyncio.sleep(due - time.perf_counter())
    asyncio.run(main())

{"front": serve, "scheduler": schedule, "worker": run}[role]()
"""


def measure() -> dict[str, float]:
    """ms of processor time a second, by part, at a hundred steps a second, which a busy machine does not reach."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        cap = folder / "cap"
        cap.mkdir()
        command = [sys.executable, "-c", PROGRAM, ROLES[0], PROGRAM, *ROLES[1:]]
        service = subprocess.Popen(command, env=_environment(folder, cap), start_new_session=True)
        try:
            sampler = Sampler(service.pid, Segments(folder, "samples", 64 << 20, 3600))
            _sample(sampler, START_S)
            spent, began, size = time.thread_time(), time.monotonic(), _size(folder)
            _sample(sampler, SECONDS)
            spent, took, size = time.thread_time() - spent, time.monotonic() - began, _size(folder) - size
            sampler.close()
        finally:
            os.killpg(service.pid, signal.SIGKILL)
            service.wait()
        hooks, plugin = _counts(cap, "host", "shim_cost", "name"), _counts(cap, "stats", "C", "k")
        steps = _rate(plugin, "calls") * 1e6
        found = {
            "hooks": _rate(hooks, "hooks_ns") * 100 / steps,
            "the hooks' threads": _rate(hooks, "thread_ns") * 100 / steps,
            "plugin": _rate(plugin, "cpu_ns") * 100 / steps,
            "the plugin's thread": _rate(plugin, "writer_ns") * 100 / steps,
            "sampler": spent * 1e3 / took,
        }
        others = {
            "all": sum(found.values()),
            "us a call of a hook": _rate(hooks, "hooks_ns") * 1e-3 / _rate(hooks, "calls"),
            "KB a second": size / 1024 / took * 100 / steps,
            "steps a second": steps,
        }
        return found | others


def _sample(sampler: Sampler, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sampler.turn()
        time.sleep(INTERVAL_S)


def _counts(cap: Path, stem: str, name: str, key: str) -> list[list[dict[str, Any]]]:
    """What each process said of its own cost, once it runs steadily."""
    found: list[list[dict[str, Any]]] = []
    for path in cap.glob(f"{stem}-*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        told = [row for row in rows if row.get(key) == name and row["t"] >= rows[0]["t"] + START_S * 1e9]
        found += [told] if len(told) > 1 else []
    assert found, f"no {stem} tells what it costs"
    return found


def _rate(found: list[list[dict[str, Any]]], field: str) -> float:
    """ms a second, all processes together."""
    return sum((told[-1][field] - told[0][field]) / (told[-1]["t"] - told[0]["t"]) * 1e3 for told in found)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.jsonl"))


def _environment(folder: Path, cap: Path) -> dict[str, str]:
    for name, text in FILES.items():
        path = folder / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for above in path.relative_to(folder / "lib").parents[:-1]:
            (folder / "lib" / above / "__init__.py").touch()
    path = os.pathsep.join(map(str, (SHIM, PLUGIN, folder / "lib")))
    bounds = {"TELLER_CAPTURE_BYTES": str(64 << 20), "TELLER_CAPTURE_SECONDS": "3600"}
    return {**os.environ, **bounds, "PYTHONPATH": path, "TELLER_CAPTURE_DIR": str(cap)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = [measure() for _ in range(parser.parse_args().rounds)]
    print("| part | ms of processor time a second |\n| --- | --- |")
    for part in rounds[0]:
        print(f"| {part} | {min(one[part] for one in rounds):.2f} |")
