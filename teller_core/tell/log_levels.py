"""What an engine's log says from time to time of all its requests together, as readings like those of /metrics."""

import json

import numpy as np

from teller_core.data.line_fields import decimal_in
from teller_core.data.readings import Readings
from teller_core.data.steps import Lines

GAUGES: dict[str, tuple[tuple[str, str, float], ...]] = {
    "vllm.stats": (
        ("running", "running", 1.0),
        ("waiting", "waiting", 1.0),
        ("kv_usage", "kv_percent", 0.01),
        ("prefix_hit_rate", "prefix_hit_percent", 0.01),
        ("prompt_rate", "prompt_tokens_per_s", 1.0),
        ("output_rate", "generation_tokens_per_s", 1.0),
    ),
    "sglang.prefill": (("running", "running", 1.0), ("waiting", "queue", 1.0), ("kv_usage", "usage", 1.0)),
    "sglang.decode": (
        ("running", "running", 1.0),
        ("waiting", "queue", 1.0),
        ("kv_usage", "usage", 1.0),
        ("output_rate", "tokens_per_s", 1.0),
    ),
}
"""By the rule of a line: the reading, the line's field, and what one of its units is in the reading's."""


def log_readings(lines: Lines) -> Readings:
    """The gauges that ``lines`` tell, a source a process and engine; a line without a field tells nothing of it."""
    rows = sorted(
        (name, f"{lines.process[at]} {fields.get('engine', '')}".strip(), int(lines.time[at]), value * scale)
        for at, rule in enumerate(lines.rule)
        if rule in GAUGES
        for fields in [json.loads(lines.fields[at])]
        for name, field, scale in GAUGES[rule]
        if (value := decimal_in(fields, field)) is not None
    )
    times = np.array([time for _, _, time, _ in rows], dtype=np.int64)
    return Readings(
        name=[name for name, *_ in rows],
        source=[source for _, source, *_ in rows],
        start=times,
        stop=times,
        value=np.array([value for *_, value in rows], dtype=np.float64),
    )
