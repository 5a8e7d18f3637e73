"""Runs, one after the other, as one capture: what a recorder would have left of a service that did the same work again and again.

Every run is what one caller asked for: a request that took part in all steps of the run and had a token from each.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from teller_core.data.capture import Balance, Capture, Pauses, Rank, Samples, process_name
from teller_core.data.readings import no_buckets, no_readings
from teller_core.data.steps import Lines, Mapping, Participation, Requests, Role, Steps, StepWork, TokenTimes
from teller_core.data.table import UNKNOWN, Int32, Int64
from teller_core.data.trace import kernel_totals
from teller_core.data.tree import ROOT, Tree
from teller_core.lab.perturb.meeting import met_again
from teller_core.lab.perturb.runs import Laid, Run

APART_NS = 500_000_000
"""Between two runs: so long nothing is asked of the service."""
NAME = "replayed"
PROFILED = 4


def laid(runs: Sequence[Run], since: int, work: Sequence[float]) -> Laid:
    """``runs`` one after the other from ``since`` (ns) on."""
    begin = np.array([_first(run) for run in runs], dtype=np.int64)
    lasted = np.array([int(run.end.max()) for run in runs], dtype=np.int64) - begin
    before = np.append(0, np.cumsum(lasted + APART_NS)[:-1]) + since
    size = np.array([[len(part.tree) for part in run.parts] for run in runs], dtype=np.int64)
    return Laid(runs, before - begin, np.cumsum(size, axis=0) - size, work)


def _first(run: Run) -> int:
    timed = run.piece.linked.host | run.piece.linked.work
    return int(run.start[timed].min())


def assembled(capture: Capture, given: Laid) -> Capture:
    """The runs ``given`` of a piece of ``capture``."""
    ranks = [replace(rank, tree=None, kernels=0, kernel_time=0, problems={}) for rank in capture.ranks]
    for at, part in enumerate(given.runs[0].parts):
        ranks[part.rank] = _traced(capture.ranks[part.rank], given, at)
    collectives, meetings = met_again(capture, given)
    few = np.empty(0, dtype=np.int64)
    return Capture(
        id=NAME,
        name=NAME,
        engine=capture.engine,
        files=[],
        ranks=[replace(rank, file=-1) for rank in ranks],
        steps=_steps(capture.steps, given),
        work=_work(given),
        requests=_requests(capture.steps, given),
        participation=_participation(capture.steps, given),
        tokens=_tokens(given),
        lines=_no_lines(),
        pauses=_pauses(capture, given),
        samples=Samples(few, few, [], [], [], few),
        collectives=collectives,
        meetings=meetings,
        readings=no_readings(),
        buckets=no_buckets(),
        balance=Balance(),
        tier=PROFILED,
    )


def _traced(rank: Rank, given: Laid, at: int) -> Rank:
    tree = joined([run.parts[at].tree for run in given.runs], given.offset)
    kernels, time = kernel_totals(tree.trace)
    return replace(rank, tree=tree, kernels=kernels, kernel_time=time, problems={})


def joined(trees: Sequence[Tree], offset: Int64) -> Tree:
    """``trees`` of one process one behind the other, each so many ns later. Their words are the same but for the last ones."""
    first = trees[0].trace
    shared_names = min(len(tree.trace.names) for tree in trees)
    shared_words = min(len(tree.trace.categories) for tree in trees)
    names, words = list(first.names[:shared_names]), list(first.categories[:shared_words])
    columns: dict[str, list[np.ndarray]] = {name: [] for name in _COLUMNS}
    parents: list[np.ndarray] = []
    stops: list[np.ndarray] = []
    rows = 0
    for tree, later in zip(trees, offset.tolist(), strict=True):
        trace = tree.trace
        for name in _COLUMNS:
            columns[name].append(getattr(trace, name))
        columns["start"][-1] = trace.start + later
        columns["name"][-1] = _numbered(names, trace.names, shared_names)[trace.name]
        columns["category"][-1] = _numbered(words, trace.categories, shared_words)[trace.category]
        parents.append(np.where(tree.parent == ROOT, ROOT, tree.parent + rows))
        stops.append(tree.stop + rows)
        rows += len(tree)
    made = {name: np.concatenate(each).astype(getattr(first, name).dtype) for name, each in columns.items()}
    trace = replace(first, **made, names=names, categories=words, events_in_file=rows, events_other={}, problems={})
    return Tree(trace, np.concatenate(parents).astype(np.int32), np.concatenate(stops).astype(np.int32))


_COLUMNS = ("start", "dur", "name", "lane", "category", "layer", "link", "arg")


def _numbered(known: list[str], words: Sequence[str], shared: int) -> Int64:
    """int64 a word: its number among those that are ``known``, which grow by those that are not."""
    own = list(range(shared))
    for word in words[shared:]:
        if word not in known[shared:]:
            known.append(word)
        own.append(known.index(word, shared))
    return np.array(own, dtype=np.int64)


def _times(given: Laid) -> tuple[Int64, Int64]:
    """int64 ns [runs, steps]: when each step began and was over, on all ranks together."""
    begin = np.stack([run.began() for run in given.runs])
    over = np.stack([run.over.max(axis=1) for run in given.runs])
    return begin + given.offset[:, None], over + given.offset[:, None]


def _steps(steps: Steps, given: Laid) -> Steps:
    begin, over = (each.reshape(-1) for each in _times(given))
    at = np.tile(given.runs[0].piece.steps, len(given.runs))
    more = np.repeat(np.array(given.work), len(given.runs[0].piece.steps))
    count = len(at)

    def work(column: Int32 | Int64) -> Int64:
        was = column[at].astype(np.int64)
        return np.where(was > 0, np.rint(was * more), was).astype(np.int64)

    alone = (steps.generation_requests[at] < 0) | (steps.context_tokens[at] < 0)
    one = np.ones(count, dtype=np.int32)
    return Steps(
        engine=np.zeros(count, dtype=np.int32),
        number=np.arange(count, dtype=np.int64),
        scheduled=begin,
        launched=begin,
        finished=over,
        delivered=over,
        context_requests=np.where(alone, 0, steps.context_requests[at]).astype(np.int32),
        context_tokens=np.where(alone, 0, work(steps.context_tokens)).astype(np.int32),
        generation_requests=np.where(alone, one, steps.generation_requests[at]).astype(np.int32),
        generation_tokens=np.where(alone, np.rint(more), work(steps.generation_tokens)).astype(np.int32),
        kv_tokens=work(steps.kv_tokens),
        kv_usage=np.full(count, np.nan),
        preempted=np.zeros(count, dtype=np.int32),
        mapping=np.full(count, Mapping.RECORDED, dtype=np.uint8),
        confidence=np.ones(count),
        elapsed=np.full(count, UNKNOWN),
    )


def _work(given: Laid) -> StepWork:
    rows: list[tuple[int, ...]] = []
    for at, run in enumerate(given.runs):
        first, later, piece = run.piece.linked.first, int(given.offset[at]), run.piece
        for step, part in np.argwhere(piece.high > piece.low).tolist():
            low = int(given.rows[at, part] - first[part])
            rows.append(
                (
                    at * len(piece.steps) + step,
                    run.parts[part].rank,
                    int(run.begin[step, part]) + later,
                    int(run.over[step, part]) + later,
                    int(piece.low[step, part]) + low,
                    int(piece.high[step, part]) + low,
                )
            )
    step, rank, start, stop, row, row_stop = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    small = [column.astype(np.int32) for column in (step, rank, row, row_stop)]
    return StepWork(small[0], small[1], start, stop, small[2], small[3])


def _requests(steps: Steps, given: Laid) -> Requests:
    begin, over = _times(given)
    count, unknown = len(given.runs), np.full(len(given.runs), UNKNOWN)
    since, until = begin.min(axis=1), over.max(axis=1)
    gaps = np.diff(over, axis=1)
    longest = gaps.argmax(axis=1) if gaps.shape[1] else np.zeros(count, dtype=np.int64)
    row = np.arange(count)
    prompt = int(np.maximum(steps.context_tokens[given.runs[0].piece.steps], 0).sum())
    minus = np.full(count, -1, dtype=np.int32)
    return Requests(
        number=np.arange(1, count + 1, dtype=np.int32),
        engine_id=[f"request-{k}" for k in range(1, count + 1)],
        client_id=[""] * count,
        trace_id=[""] * count,
        client_start=since,
        received=since,
        queued=since,
        scheduled=since,
        first_token=over[:, 0],
        last_token=until,
        finished=until,
        client_first=over[:, 0],
        client_end=until,
        itl_max=gaps[row, longest] if gaps.shape[1] else unknown,
        itl_max_at=over[row, longest + 1] if gaps.shape[1] else unknown,
        queue_ns=np.zeros(count, dtype=np.int64),
        prompt_tokens=np.rint(np.array(given.work) * prompt).astype(np.int32) if prompt else minus,
        output_tokens=np.full(count, over.shape[1], dtype=np.int32),
        cached_tokens=np.zeros(count, dtype=np.int32),
        preemptions=np.zeros(count, dtype=np.int32),
        engine=np.zeros(count, dtype=np.int32),
        failed=np.zeros(count, dtype=np.uint8),
        tokenized=since,
        finish_reason=["length"] * count,
    )


def _participation(steps: Steps, given: Laid) -> Participation:
    at = given.runs[0].piece.steps
    count = len(at) * len(given.runs)
    prompt = np.tile(np.maximum(steps.context_tokens[at], 0), len(given.runs))
    return Participation(
        step=np.arange(count, dtype=np.int32),
        request=np.repeat(np.arange(len(given.runs), dtype=np.int32), len(at)),
        tokens=np.where(prompt > 0, np.rint(prompt * np.repeat(np.array(given.work), len(at))), 1).astype(np.int32),
        recomputed=np.zeros(count, dtype=np.int32),
        role=np.where(prompt > 0, Role.PREFILL, Role.DECODE).astype(np.uint8),
        mapping=np.full(count, Mapping.RECORDED, dtype=np.uint8),
        confidence=np.ones(count),
    )


def _tokens(given: Laid) -> TokenTimes:
    _, over = _times(given)
    offset = np.arange(len(given.runs) + 1, dtype=np.int64) * over.shape[1]
    return TokenTimes(offset, np.sort(over, axis=1).reshape(-1))


def _pauses(capture: Capture, given: Laid) -> Pauses:
    rows: list[tuple[int, int, str, str]] = []
    for run, later in zip(given.runs, given.offset.tolist(), strict=True):
        for part, begin, ns in run.stops:
            rank = capture.ranks[run.parts[part].rank]
            rows.append((begin + later, ns, process_name(rank.host, rank.pid, rank.rank), rank.role))
    rows.sort()
    start, dur = (np.array([row[k] for row in rows], dtype=np.int64) for k in range(2))
    return Pauses(
        start, dur, np.zeros(len(rows), dtype=np.int64), [r[2] for r in rows], [r[3] for r in rows], ["gc"] * len(rows)
    )


def _no_lines() -> Lines:
    few, many = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    return Lines(many, many, many, [], [], [], [], [], few, few, few, few)
