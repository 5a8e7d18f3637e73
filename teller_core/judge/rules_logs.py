"""Rules for what engines, the collectives' watchdog and the kernel say outright in their logs."""

import json

from teller_core.data.line_fields import decimal_in
from teller_core.judge.evidence import COUNTED, HINTED, Clue, cost, count, line_item
from teller_core.judge.rules_metrics import hw_fault as by_metrics
from teller_core.judge.scene import Scene, over_work

HANGS = (
    ("vllm.shm_wait", "a worker waits for the others"),
    ("nccl.timeout", "a collective timed out"),
    ("vllm.rpc_timeout", "the workers did not answer"),
    ("sglang.watchdog", "the scheduler stood still"),
)
"""Log rules of engines whose processes wait for each other, and what each line says."""
WAITED = {"seconds": 1e9, "ran_ms": 1e6}
"""Fields that tell how long it had lasted when the line was written, and ns of their unit."""


def collective_hang(scene: Scene) -> Clue | None:
    """A worker got no work from the others for a minute, or a collective never ended, and somebody said so."""
    told = [(row, what) for rule, what in HANGS for row in scene.lines(rule)]
    if not told:
        return None
    waited = sum(_waited(scene, row) for row, _ in told if scene.case.capture.lines.rule[row] == "vllm.shm_wait")
    longest = max((_waited(scene, row) for row, _ in told), default=0)
    ns = min(max(waited, longest), scene.span) or over_work(scene)
    evidence = [cost("no progress between the workers", ns, kind="log_line", scope="capture")]
    evidence += [line_item(scene, row, what) for row, what in told[:3]]
    return Clue("comm.collective_hang", ns, COUNTED, evidence, view="horizontal", layer="communication")


def _waited(scene: Scene, row: int) -> int:
    fields = json.loads(scene.case.capture.lines.fields[row])
    return max(int((decimal_in(fields, name) or 0) * unit) for name, unit in WAITED.items())


def hw_fault(scene: Scene) -> Clue | None:
    """The driver reported an error of a GPU (Xid) while it ran, and it took longer than its work asks for; or metrics say so."""
    rows, ns = scene.lines("kernel.xid"), over_work(scene)
    if not rows or ns <= 0:
        return by_metrics(scene)
    evidence = [
        cost("beyond what its work predicts, while the driver reported errors", ns, kind="log_line"),
        count("errors that the driver reported", len(rows), unit="lines", kind="log_line", scope="capture"),
    ]
    evidence += [line_item(scene, row, "an error of a GPU, in the kernel's log") for row in rows[:3]]
    return Clue("gpu.hw_fault", ns, HINTED, evidence, layer="kernel")
