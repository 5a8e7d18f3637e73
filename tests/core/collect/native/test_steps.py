"""Steps that the import shim marks reach CUPTI, by the numbers that the engine's executions have."""

import json
from pathlib import Path

import pytest

import teller_core.collect
from tests.core.collect.native.fake_runs import Run

pytest.importorskip("cupti", reason="cupti-python is not installed")
SHIM = """
sys.path.insert(0, os.path.join(os.environ["PYTHONPATH"], "teller_core/collect/shim"))
from teller_shim_steps import begin_step, end_step
"""


def test_a_step_of_the_shim_is_a_step_of_the_records(run: Run) -> None:
    done = run(
        SHIM
        + "open_now(); begin_step(2**40); print(fake.fake_step() == 2**40); end_step(); print(fake.fake_step() > 2**40)"
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_without_the_library_a_step_is_nothing(run: Run) -> None:
    done = run(
        'del os.environ["CUDA_INJECTION64_PATH"]' + SHIM + "begin_step(1); end_step(); print(fake.fake_step() > 1)"
    )
    assert done.stdout.split() == ["True"], done.stderr


ENGINES = {
    "vllm/__init__.py": '__version__ = "0.32.0"\n',
    "vllm/v1/__init__.py": "",
    "vllm/v1/worker/__init__.py": "",
    "vllm/v1/worker/gpu_worker.py": """
class Worker:
    def execute_model(self, scheduler_output):
        print(fake.fake_step())
        if scheduler_output.num_scheduled_tokens.get("bad"):
            raise ValueError
    def sample_tokens(self, grammar_output):
        print(fake.fake_step())
""",
    "transformers/__init__.py": '__version__ = "5.24.0"\n',
    "transformers/generation/__init__.py": "",
    "transformers/generation/continuous_batching/__init__.py": "",
    "transformers/generation/continuous_batching/continuous_api.py": """
from types import SimpleNamespace as Made
class ContinuousBatchingManager:
    def add_request(self, input_ids): pass
    def _generation_step(self):
        print(fake.fake_step())
class ContinuousBatchProcessor:
    use_async_batching = False
    scheduler = Made(active_requests={}, waiting_requests={})
    inputs_and_outputs = Made(requests_in_batch=[])
    def prepare_next_batch(self): return True
    def update_batch(self): pass
""",
}
VLLM = """
from types import SimpleNamespace as Made
from vllm.v1.worker import gpu_worker
gpu_worker.fake = fake
worker = gpu_worker.Worker()
def step(number, **tokens):
    made = Made(num_scheduled_tokens=tokens)
    if number is not None:
        made._teller_step = number
    try:
        worker.execute_model(made)
    except ValueError:
        pass
open_now()
step(5, r=1); worker.sample_tokens(None); print(fake.fake_step() == 2**64 - 1)
step(6, bad=1); step(7, r=1); print(fake.fake_step() == 2**64 - 1)
step(None, r=1)
"""
TRANSFORMERS = """
from transformers.generation.continuous_batching import continuous_api as api
api.fake = fake
manager, processor = api.ContinuousBatchingManager(), api.ContinuousBatchProcessor()
open_now()
for _ in range(3):
    processor.prepare_next_batch(); manager._generation_step(); processor.update_batch(); print(fake.fake_step() == 2**64 - 1)
"""
NONE = str(2**64 - 1)


@pytest.mark.parametrize(
    ("program", "steps"),
    [
        (VLLM, ["5", "5", "True", "6", "7", "True", NONE]),
        (TRANSFORMERS, ["0", "True", "1", "True", "2", "True"]),
    ],
    ids=["vllm", "transformers"],
)
def test_the_steps_of_an_engine_are_marked_by_the_numbers_of_its_executions(
    run: Run, tmp_path: Path, program: str, steps: list[str]
) -> None:
    for name, text in ENGINES.items():
        path = tmp_path / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shim, root = Path(teller_core.collect.__file__).parent / "shim", Path(__file__).parents[4]
    done = run(program, PYTHONPATH=f"{shim}:{tmp_path / 'lib'}:{root}")
    assert done.stdout.split() == steps, done.stderr
    rows = [json.loads(line) for path in tmp_path.glob("cap/host-*.jsonl") for line in path.read_text().splitlines()]
    ran = [row.get("n") for row in rows if row["name"] in ("vllm.execute_model", "cb.step") and "err" not in row]
    marked = [int(word) for word in steps if word.isdigit() and word not in (NONE, "6")]
    assert [number for number in ran if number is not None] == list(dict.fromkeys(marked))
