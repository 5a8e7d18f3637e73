"""Log lines beside the steps and requests they are about.

A line's time is when its process wrote it. A line that counts a step belongs to it by order; a request's line by its id.
Any other line of a process that decides on or runs steps belongs to the step during which it was certainly written, if
its clock is fine enough to say so and no second step ran then; else to none.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from teller_core.data.capture import process_name
from teller_core.data.log_lines import LogLines
from teller_core.data.records import Recording, known
from teller_core.data.steps import Lines, Steps
from teller_core.data.table import UNKNOWN, Int64
from teller_core.data.texts import Texts
from teller_core.rebuild.engines import Place, place


def align_lines(
    recording: Recording,
    steps: Steps,
    *,
    step_of_iteration: Mapping[int, int],
    request_of_line: Mapping[int, int],
    engine_places: Mapping[Place, int],
    problems: Counter[str],
) -> Lines:
    """Lines by time, those without one last. ``engine_places``: the processes of each engine.

    ``before`` of a line that counts a step is how long after the step it was written, UNKNOWN where that is not known.
    Problems: ``lines_without_step``: lines that count a step which could not be told.
    """
    lines = recording.lines
    step = np.full(len(lines), -1, dtype=np.int64)
    before = np.zeros(len(lines), dtype=np.int64)
    counted = [
        (row.line, step_of_iteration.get(i, -1)) for i, row in enumerate(recording.iterations) if row.line is not None
    ]
    for line, its in counted:
        step[line] = its
        before[line] = _behind(lines.time[line], steps, its)
    problems["lines_without_step"] += sum(its < 0 for _, its in counted)
    request = np.array([request_of_line.get(i, -1) for i in range(len(lines))], dtype=np.int64)
    loose = (step < 0) & (request < 0)
    loose[[line for line, _ in counted]] = False
    _place_by_time(lines, steps, engine_places, loose, step)
    return _table(lines, before, step, request)


def _behind(time: int, steps: Steps, step: int) -> int:
    if step < 0 or not known(time) or not known(int(steps.finished[step])):
        return UNKNOWN
    return max(0, time - int(steps.finished[step]))


def _place_by_time(
    lines: LogLines,
    steps: Steps,
    engine_places: Mapping[Place, int],
    loose: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
    step: Int64,
) -> None:
    timed = (steps.begin() != UNKNOWN) & (steps.end() != UNKNOWN)
    for engine in set(engine_places.values()):
        rows = np.flatnonzero(timed & (steps.engine == engine))
        own = [i for i in np.flatnonzero(loose).tolist() if engine_places.get(place(lines.kind(i).process)) == engine]
        own = [i for i in own if known(lines.time[i]) and known(lines.resolution[i])]
        if not len(rows) or not own:
            continue
        begin, end = (
            np.sort(steps.begin()[rows]),
            np.maximum.accumulate(steps.end()[rows][np.argsort(steps.begin()[rows])]),
        )
        rows = rows[np.argsort(steps.begin()[rows], kind="stable")]
        low = np.array([lines.time[i] for i in own], dtype=np.int64)
        high = low + np.array([lines.resolution[i] for i in own], dtype=np.int64)
        k = np.searchsorted(begin, high, side="right") - 1
        alone = (k >= 0) & (begin[k] <= low) & (steps.end()[rows[k]] >= high) & ((k == 0) | (end[k - 1] < low))
        step[np.array(own)[alone]] = rows[k[alone]]


def _table(lines: LogLines, before: Int64, step: Int64, request: Int64) -> Lines:
    time = np.array(lines.time, dtype=np.int64)
    order = np.argsort(np.where(time == UNKNOWN, np.iinfo(np.int64).max, time), kind="stable")
    at: list[int] = order.tolist()
    names = {process: process_name(process.host, process.pid, process.rank) for process in lines.processes()}
    kinds = [lines.kind(i) for i in at]
    return Lines(
        time=time[order],
        before=before[order],
        after=np.array(lines.resolution, dtype=np.int64)[order],
        level=[kind.level for kind in kinds],
        rule=[kind.rule for kind in kinds],
        fields=Texts(lines.fields[i] for i in at),
        untrusted_text=Texts(lines.untrusted_text[i] for i in at),
        process=[names[kind.process] for kind in kinds],
        file=np.array(lines.file, dtype=np.int32)[order],
        number=np.array(lines.number, dtype=np.int32)[order],
        step=step[order].astype(np.int32),
        request=request[order].astype(np.int32),
    )
