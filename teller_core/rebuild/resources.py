"""What stood beside the steps: pauses, counters over time, sums of /metrics; and how deep a recording looks."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from teller_core.data.capture import STEP_THREAD, Pauses, Samples, process_name
from teller_core.data.records import Process, Recording
from teller_core.data.steps import StepWork
from teller_core.rebuild.served import PER_REQUEST

OF_A_THREAD = "thread_"
"""How the counters of one thread begin in a recording."""


def build_pauses(recording: Recording) -> Pauses:
    """Pauses by start."""
    ordered = sorted(recording.pauses, key=lambda pause: (pause.start, pause.dur))
    return Pauses(
        start=np.array([pause.start for pause in ordered], dtype=np.int64),
        dur=np.array([pause.dur for pause in ordered], dtype=np.int64),
        thread=np.array([pause.thread for pause in ordered], dtype=np.int64),
        process=[_name(pause.process) for pause in ordered],
        role=[pause.process.role for pause in ordered],
        kind=[pause.kind for pause in ordered],
    )


def build_samples(recording: Recording, problems: Counter[str]) -> Samples:
    """The growth of each process' counters between two readings, by start; of single threads those of the one that runs its
    steps, or else decides on them (see STEP_THREAD).

    Problems: ``counters_reset``: a counter fell; the interval in which it did is left out.
    """
    series: defaultdict[tuple[Process | None, str], list[tuple[int, int]]] = defaultdict(list)
    stepping = _stepping(recording)
    for sample in recording.samples:
        if sample.thread is None:
            series[sample.process, sample.name].append((sample.time, sample.value))
        elif sample.process is not None and stepping.get(sample.process) == sample.thread:
            name = sample.name.replace(OF_A_THREAD, STEP_THREAD, 1)
            series[sample.process, name].append((sample.time, sample.value))
    rows: list[tuple[int, int, str, str, str, int]] = []
    for (process, name), readings in series.items():
        readings.sort()
        for (start, low), (stop, high) in pairwise(readings):
            if high < low:
                problems["counters_reset"] += 1
                continue
            rows.append((start, stop, name, _name(process), process.role if process else "", high - low))
    rows.sort()
    return Samples(
        start=np.array([row[0] for row in rows], dtype=np.int64),
        stop=np.array([row[1] for row in rows], dtype=np.int64),
        name=[row[2] for row in rows],
        process=[row[3] for row in rows],
        role=[row[4] for row in rows],
        delta=np.array([row[5] for row in rows], dtype=np.int64),
    )


def _stepping(recording: Recording) -> dict[Process, int]:
    """The thread of each process that runs its steps most often, or else decides on them."""
    found: dict[Process, int] = {}
    for records in (recording.decisions, recording.executions):
        seen: defaultdict[Process, Counter[int]] = defaultdict(Counter)
        for one in records:
            if one.thread is not None:
                seen[one.process][one.thread] += 1
        found |= {process: threads.most_common(1)[0][0] for process, threads in seen.items()}
    return found


def sum_metrics(recording: Recording) -> Mapping[str, float]:
    """The last value of each series of a /metrics page, summed over labels, by name. Buckets of histograms are left out."""
    last: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for metric in sorted(recording.metrics, key=lambda metric: metric.time):
        if not metric.name.endswith("_bucket") and "quantile" not in metric.labels and math.isfinite(metric.value):
            last[metric.name, frozenset(metric.labels.items())] = metric.value
    sums: defaultdict[str, float] = defaultdict(float)
    for (name, _), value in last.items():
        sums[name] += value
    return dict(sums)


def tier(recording: Recording, work: StepWork, steps: int) -> int:
    """The best tier: 4 a profile overlaps a step; 3 decisions or executions were recorded; 2 steps are known at all;
    1 request spans or records, as of an engine that logs what each request took; 0 other logs and metrics."""
    if len(work.row) and bool((work.row >= 0).any()):
        return 4
    if recording.decisions or recording.executions:
        return 3
    if steps:
        return 2
    told = recording.spans or recording.clients or any(fact.kind in PER_REQUEST for fact in recording.requests)
    return 1 if told else 0


def _name(process: Process | None) -> str:
    return process_name(process.host, process.pid, process.rank) if process else ""
