"""A whole capture on the fake CUPTI: hooks mark the steps, a window opens by plan, and answers lead from a kernel to requests."""

import json
import sys
from pathlib import Path

import pytest

from teller_core import cli
from teller_core.collect.bundle import record
from teller_core.collect.windows.triggers import Plan, Window
from tests.core.collect.native.fake_runs import HERE
from tests.core.collect.test_shim_vllm import FILES

pytest.importorskip("cupti", reason="cupti-python is not installed")

from tests.core.collect.native.test_steps_of_kernels import capture_of, requests_by_link

WORKER = """
import time
class Worker:
    def execute_model(self, scheduler_output):
        self.launch(self.step())
        time.sleep(0.005)
    def sample_tokens(self, grammar_output): return 1
"""
SERVICE = """
import ctypes, os, sys, threading, time
from types import SimpleNamespace as Made
fake, ours = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
fake.fake_step.restype = ctypes.c_uint64
from tests.core.collect.native.records import feed, sizes, step_of_two_launches
from vllm.v1.core.sched.scheduler import Request, Scheduler
from vllm.v1.worker.gpu_worker import Worker
sizes(fake)
ours.InitializeInjection()
launched = 0
def launch(step):
    global launched
    launched += 1
    if step < 2**63:  # on a clock that is 10 ms ahead
        feed(fake, step_of_two_launches(time.time_ns() + 10_000_000, 1000 * step + 1, step, threading.get_native_id()))
Worker.step, Worker.launch = staticmethod(fake.fake_step), staticmethod(launch)
scheduler, worker = Scheduler(), Worker()
end, number = time.monotonic() + 90, 0
while ours.teller_windows_ended() < 1 and time.monotonic() < end:
    number += 1
    if number % 5 == 1:
        scheduler.add_request(Request(request_id="r%d" % number))
    if number % 12 == 0:
        scheduler.finish_requests([next(iter(scheduler.requests))], Made(name="FINISHED_STOPPED"))
    decision = scheduler.schedule()
    worker.execute_model(decision)
    worker.sample_tokens(None)
    names = list(decision.num_scheduled_tokens)
    output = Made(sampled_token_ids=[[1] for _ in names], req_id_to_index={name: i for i, name in enumerate(names)})
    scheduler.update_from_output(decision, output)
"""


def test_a_kernel_of_a_capture_leads_to_the_requests_that_it_served(
    fake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {**FILES, "vllm/v1/worker/gpu_worker.py": WORKER}.items():
        path = tmp_path / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    bundle = tmp_path / "bundle"
    plan = Plan(at_seconds=(0.8,), window=Window(600, 12))
    variables = {"PYTHONPATH": f"{tmp_path / 'lib'}:{HERE.parents[3]}"}
    command = [sys.executable, "-c", SERVICE, str(fake)]
    with record(command, bundle, variables, plan=plan, without=["plugin", "samples", "log"]) as service:
        service.process.wait(100)
    assert service.process.returncode == 0, (bundle / "server.log").read_text()
    rows = [json.loads(line) for path in bundle.glob("cap/host-*.jsonl") for line in path.read_text().splitlines()]
    served = {row["n"]: set(row["tokens"]) for row in rows if row["name"] == "vllm.schedule"}
    found = requests_by_link(capture_of(bundle))
    steps = sorted({link // 1000 for link in found})
    assert len(steps) == 12 and steps == list(range(steps[0], steps[0] + 12))
    assert found == {1000 * step + k: served[step] for step in steps for k in (1, 2)}
    database = ["--db", str(tmp_path / "store.db")]
    assert cli.main(["import", str(bundle), *database]) == 0
    capsys.readouterr()
    assert cli.main(["slice", "step", str(steps[3]), *database]) == 0
    assert "gemm_kernel" in capsys.readouterr().out
