"""The recorder in an engine of vLLM's shape: outcomes, evictions, workers, the front end, and an event loop that is late."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.core.collect.test_shim import _environment, _events

FILES = {
    "vllm/__init__.py": '__version__ = "0.32.0"\n',
    "vllm/v1/core/sched/scheduler.py": """
from types import SimpleNamespace as Made
class Request(Made):
    num_prompt_tokens, max_tokens, num_preemptions, num_stale_output_tokens = 9, 5, 0, 0
    num_computed_tokens, num_in_flight_tokens = 6, 1
    prefill_stats = None
    def is_finished(self): return False
class Scheduler:
    def __init__(self):
        self.requests, self.current_step, self.connector = {}, 0, None
    def get_request_counts(self): return len(self.requests), 0
    def get_kv_cache_usage(self): return 0.5
    def add_request(self, request): self.requests[request.request_id] = request
    def schedule(self):
        self.current_step += 1
        again = Made(req_ids=list(self.requests), num_computed_tokens=[6] * len(self.requests), resumed_req_ids=set())
        return Made(scheduled_new_reqs=[], scheduled_cached_reqs=again, preempted_req_ids=None, finished_req_ids=set(),
                    num_scheduled_tokens=dict.fromkeys(self.requests, 3),
                    scheduled_spec_decode_tokens={"a": [7, 8]} if "a" in self.requests else {})
    def update_from_output(self, scheduler_output, model_runner_output):
        outputs = []
        for name in scheduler_output.num_scheduled_tokens:
            if name in self.requests:
                ids = model_runner_output.sampled_token_ids[model_runner_output.req_id_to_index[name]]
                del ids[1:]
                outputs.append(Made(request_id=name, new_token_ids=ids, finish_reason=Made(name="STOP")))
        return {0: Made(outputs=outputs)}
    def _preempt_request(self, request, timestamp, drop_stale_output=False): pass
    def finish_requests(self, request_ids, finished_status):
        return [self.requests.pop(name) for name in request_ids]
""",
    "vllm/v1/worker/gpu_worker.py": """
class Worker:
    def execute_model(self, scheduler_output): return None
    def sample_tokens(self, grammar_output): return 1
""",
    "vllm/profiler/wrapper.py": """
class WorkerProfiler:
    def _call_start(self): self._start()
    def _call_stop(self): self._stop()
class TorchProfilerWrapper(WorkerProfiler):
    def _start(self): pass
    def _stop(self): pass
""",
    "vllm/v1/engine/async_llm.py": """
class AsyncLLM:
    async def generate(self, prompt, sampling_params, request_id): 
        await self.add_request(request_id, prompt, sampling_params)
        yield 1
    async def add_request(self, request_id, prompt, params):
        from types import SimpleNamespace as Made
        self._run_output_handler()
        inner = request_id + "-0a1b2c3d"
        self.processor.add_request(Made(request_id=inner, external_req_id=request_id, prompt_token_ids=[1] * 4))
    def _run_output_handler(self): pass
""",
    "vllm/v1/utils.py": """
def shutdown(procs, timeout=None):
    if timeout == 0:
        import os, signal
        for process in procs:
            os.kill(process, signal.SIGKILL)
""",
    "vllm/v1/engine/output_processor.py": """
class OutputProcessor:
    def add_request(self, request): pass
    def process_outputs(self, engine_core_outputs): return []
    def _update_stats_from_finished(self, state, reason, stats): pass
    def abort_requests(self, ids, internal): return list(ids)
""",
    "vllm/renderers/base.py": """
class BaseRenderer:
    async def tokenize_prompt_async(self, prompt): return [1]
    def _tokenize_prompt(self, prompt): return [1]
""",
    "vllm/entrypoints/openai/completion/serving.py": """
class OpenAIServingCompletion:
    async def create_completion(self, request, raw_request):
        await self.renderer.tokenize_prompt_async("text")
        return self.engine.generate("text", None, "cmpl-mine-0")
""",
}


def _run(folder: Path, code: str) -> list[dict[str, Any]]:
    """The recorder's events while ``code`` used an engine of vLLM's shape."""
    for name, text in FILES.items():
        path = folder / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for above in path.relative_to(folder / "lib").parents:
            (folder / "lib" / above / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=_environment(folder / "cap", [folder / "lib"]),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    events = _events(folder / "cap")
    assert [event for event in events if event["name"] == "hook_error"] == []
    return events


def _named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["name"] == name]


ENGINE = """
import pickle
from types import SimpleNamespace as Made
from vllm.v1.core.sched.scheduler import Request, Scheduler
from vllm.v1.worker.gpu_worker import Worker
engine, worker = Scheduler(), Worker()
for name in "ab": engine.add_request(Request(request_id=name))
chosen = engine.schedule()
sent = pickle.loads(pickle.dumps(chosen))
worker.execute_model(sent); worker.sample_tokens(None)
engine._preempt_request(engine.requests["a"], 0.0)
engine.finish_requests(["b"], Made(name="FINISHED_ABORTED"))
engine.update_from_output(chosen, Made(sampled_token_ids=[[5, 6], [7]], req_id_to_index={"a": 0, "b": 1}))
"""


def test_a_step_is_called_alike_where_it_is_chosen_run_and_taken_in(tmp_path: Path) -> None:
    events = _run(tmp_path, ENGINE)
    names = ("vllm.schedule", "vllm.execute_model", "vllm.update")
    assert [_named(events, name)[0]["n"] for name in names] == [1, 1, 1]
    (ran,), (sampled,) = _named(events, "vllm.execute_model"), _named(events, "vllm.sample_tokens")
    assert (sampled["tid"], sampled["t"] >= ran["t"] + ran["dur"]) == (ran["tid"], True)


def test_what_came_out_is_told_with_what_was_rejected_too_much_or_unwanted(tmp_path: Path) -> None:
    (came,) = _named(_run(tmp_path, ENGINE), "vllm.update")
    told = {name: came.get(name) for name in ("got", "rejected", "surplus", "unused", "done")}
    assert told == {
        "got": {"a": 1},
        "rejected": {"a": 1},
        "surplus": {"a": 1},
        "unused": {"b": 3},
        "done": {"a": "stop"},
    }


def test_requests_coming_evicted_and_ended_are_told(tmp_path: Path) -> None:
    events = _run(tmp_path, ENGINE)
    assert [(event["rid"], event["prompt"]) for event in _named(events, "request.queued")] == [("a", 9), ("b", 9)]
    assert [(event["rid"], event["computed"]) for event in _named(events, "request.preempted")] == [("a", 6)]
    assert [(event["rid"], event["reason"]) for event in _named(events, "request.ended")] == [("b", "FINISHED_ABORTED")]


def test_the_start_and_the_stop_of_its_own_profiler_are_told(tmp_path: Path) -> None:
    code = "from vllm.profiler.wrapper import TorchProfilerWrapper as P\nP()._call_start(); P()._call_stop()"
    events = _run(tmp_path, code)
    for name in ("vllm.profiler_start", "vllm.profiler_stop"):
        assert [event["ph"] for event in _named(events, name)] == ["X"]


FRONT = """
import asyncio, time
from types import SimpleNamespace as Made
from vllm.entrypoints.openai.completion.serving import OpenAIServingCompletion
from vllm.renderers.base import BaseRenderer
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.output_processor import OutputProcessor
handler, engine, processor = OpenAIServingCompletion(), AsyncLLM(), OutputProcessor()
handler.renderer, handler.engine, engine.processor = BaseRenderer(), engine, processor

async def serve():
    raw = Made(headers={"X-Request-Id": "mine"})
    # As vLLM's routes do: the handler runs in a task of its own, its answer is read outside.
    answer = await asyncio.create_task(handler.create_completion(Made(request_id="its-own"), raw))
    async for _ in answer: pass
    rid = "cmpl-mine-0-0a1b2c3d"
    first = Made(request_id=rid, prefill_stats=Made(), new_token_ids=[1])
    processor.process_outputs([first, Made(request_id=rid, prefill_stats=None, new_token_ids=[1])])
    state = Made(request_id=rid, external_req_id="cmpl-mine-0", parent_req=None, num_cached_tokens=2,
                 detokenizer=Made(num_output_tokens=lambda: 3))
    processor._update_stats_from_finished(state, Made(name="LENGTH"), None)
    processor.abort_requests(["cmpl-other"], internal=True)
    await asyncio.sleep(0.06)
    time.sleep(0.5)  # the loop cannot run what is due
    await asyncio.sleep(0.06)

asyncio.run(serve())
"""


def test_a_request_is_followed_from_its_handler_to_its_engine_and_back(tmp_path: Path) -> None:
    events = _run(tmp_path, FRONT)
    (arrived,), (added,) = _named(events, "request.arrived"), _named(events, "request.added")
    assert (arrived["rid"], added["front"]) == ("cmpl-mine", "cmpl-mine")
    assert (added["rid"], added["ext"], added["prompt"]) == ("cmpl-mine-0-0a1b2c3d", "cmpl-mine-0", 4)
    assert added["at"] <= arrived["t"] <= added["tokenized"] <= added["t"]
    assert [event["rid"] for event in _named(events, "request.first_token")] == [added["rid"]]
    (finished,) = _named(events, "request.finished")
    assert (finished["reason"], finished["tokens"], finished["cached"]) == ("length", 3, 2)
    assert [event["rid"] for event in _named(events, "request.aborted")] == ["cmpl-other"]


def test_a_late_event_loop_is_told(tmp_path: Path) -> None:
    late = _named(_run(tmp_path, FRONT), "loop_lag")
    assert late
    assert max(event["lag"] for event in late) > 100_000_000
    assert all(json.dumps(event) for event in late)


ENDS = """
import os, signal
import teller_shim_events as events, teller_shim_vllm_front as front
from vllm.v1.utils import shutdown
front.WRITTEN_S = 600.0
shutdown([])
shutdown([], timeout=0)
shutdown([os.getpid()], 5.0)
front.WRITTEN_S = 2.0
told, tell = os.pipe()
process = os.fork()
if not process:
    events.instant("held")
    os.write(tell, b".")
    signal.pause()
os.read(told, 1)
shutdown([process], timeout=0.0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == -signal.SIGKILL
front.WRITTEN_S = 600.0
signal.signal(signal.SIGTERM, lambda *_: None)
signal.SIGKILL = signal.SIGTERM
shutdown([os.getpid()], timeout=0)
"""
"""Processes that are ended with patience, then without, which kills one, and once more."""


def test_what_a_process_holds_is_written_before_vllm_kills_it(tmp_path: Path) -> None:
    assert len(_named(_run(tmp_path, ENDS), "held")) == 1
