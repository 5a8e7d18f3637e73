"""The requests of a capture as numbers, for what learns: what callers and service recorded of each, against its peers."""

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.sheets import GROUPS
from teller_core.data.table import UNKNOWN, Float64, Int64
from teller_core.judge.request_load import measured
from teller_core.judge.step_numbers import centered

NAMES = tuple(name for name in GROUPS["request"] if name != "failed")
"""The columns of :func:`request_numbers`, by their names in the group ``request`` of a sheet."""


def request_numbers(capture: Capture) -> Float64:
    """float64 [requests, NAMES], NaN for what nobody recorded: times as the log over the capture's median."""
    table = capture.requests
    values = measured(table, capture.tokens)
    spans = [
        _span(table.client_start, table.received),
        _span(table.received, table.tokenized),
        table.queue(),
        _span(table.scheduled, table.first_token),
        _span(table.last_token, table.client_end),
    ]
    columns = [centered(ns) for ns in (*values.values(), *spans)]
    counts = [table.prompt_tokens, table.output_tokens]
    columns += [centered(np.where(count >= 0, count.astype(np.int64), UNKNOWN), floor=1.0) for count in counts]
    prompt = np.maximum(table.prompt_tokens, 1)
    columns.append(np.where(table.cached_tokens >= 0, table.cached_tokens / prompt, np.nan))
    columns.append(np.where(table.preemptions >= 0, np.log1p(table.preemptions.clip(0)), np.nan))
    return np.column_stack(columns)


def _span(low: Int64, high: Int64) -> Int64:
    return np.where((low != UNKNOWN) & (high != UNKNOWN) & (high >= low), high - low, UNKNOWN)
