"""What the steps of one engine computed: for whom, how many tokens, on top of what, and when."""

from dataclasses import dataclass

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.steps import Mapping, Role
from teller_core.data.table import UNKNOWN, Int32, Int64, Mask, take
from teller_core.judge.expectations import over
from teller_core.judge.reschedule.evictions import Evictions, Rows, evictions

COVERED = 0.9
"""Of the steps and requests of an engine, the share that must be known: what is missing would be simulated wrongly."""


@dataclass(frozen=True)
class Batches:
    """The steps of one engine in the order of their decisions, and what each of them computed.

    A column a step: ``step`` int32 position in the capture; int64 ns ``decided`` and ``ended``; ``row`` int64, one longer: its
    rows. A column a row (a request in a step, by step): ``at`` int64 its step in this table, ``request`` int32 position in the
    capture; int64 ``tokens`` computed, ``held`` in the cache before, ``ahead``: of the prompt, or of what an eviction threw
    away, still to compute before, the step's own included (0: it decodes); ``turn``: tokens of the answer's steps done before;
    ``since``: the step in which it was admitted last. A column a request of the capture, int64: ``first`` and ``last`` step
    that served it (-1 none), ``answers``: the step that gave its first token, ``prompt``: tokens of it to compute, ``cached``:
    those in the cache already; ``unit`` int64, flat, with ``units`` one longer: tokens that each of its decodes computes.
    """

    engine: int
    step: Int32
    decided: Int64
    ended: Int64
    row: Int64
    at: Int64
    request: Int32
    tokens: Int64
    held: Int64
    ahead: Int64
    turn: Int64
    since: Int64
    first: Int64
    last: Int64
    answers: Int64
    prompt: Int64
    cached: Int64
    kept: Int64
    unit: Int64
    units: Int64
    of: Int64
    """Rows by request, then by step; those of request r are ``of[own[r]:own[r + 1]]``."""
    own: Int64

    def rows(self, request: int) -> Int64:
        """int64: the rows of a request, by step."""
        return self.of[int(self.own[request]) : int(self.own[request + 1])]


def unfit(capture: Capture, engine: int) -> str:
    """Why the steps of an engine cannot be batched anew; empty where they can."""
    steps, served = capture.steps, capture.participation
    mine = steps.engine == engine
    begun = (steps.begin() != UNKNOWN) & (steps.end() != UNKNOWN)
    rows = mine[served.step]
    recorded = (served.mapping == Mapping.RECORDED) & (served.tokens >= 0)
    if not rows.any() or recorded[rows].mean() < COVERED:
        return "how many tokens each step computed for which request was not recorded"
    return (
        "" if begun[mine].mean() >= COVERED else "when its steps were decided on and when they ended was not recorded"
    )


def batches(capture: Capture, engine: int) -> Batches:
    """The steps of ``engine`` whose decision and end are known. See :func:`unfit`."""
    steps, served = capture.steps, capture.participation
    decided = np.where(steps.scheduled != UNKNOWN, steps.scheduled, steps.begin())
    ended = over(capture)
    there = np.flatnonzero((steps.engine == engine) & (decided != UNKNOWN) & (ended != UNKNOWN) & (ended >= decided))
    there = there[np.argsort(decided[there], kind="stable")]
    place = np.full(len(decided), -1, dtype=np.int64)
    place[there] = np.arange(len(there))
    part = np.flatnonzero((place[served.step] >= 0) & (served.tokens > 0))
    part = part[np.argsort(place[served.step[part]], kind="stable")]
    mine = take(served, part)
    at, request = place[mine.step], mine.request
    tokens, again = mine.tokens.astype(np.int64), np.minimum(mine.recomputed.clip(0), mine.tokens).astype(np.int64)
    count = len(capture.requests.number)
    of = np.lexsort((at, request)).astype(np.int64)
    own = np.searchsorted(request[of], np.arange(count + 1)).astype(np.int64)
    cached = capture.requests.cached_tokens.clip(0).astype(np.int64)
    known = capture.requests.prompt_tokens
    need = np.where(known >= 0, known - cached, np.iinfo(np.int64).max)
    rows = Rows(at[of], request[of], tokens[of], again[of])
    gone = np.cumsum(steps.preempted[there].clip(0)).astype(np.int64)
    back = evictions(rows, cached, capture.requests.preemptions.astype(np.int64), gone)
    life = _lives(rows, back, mine.role[of] == Role.PREFILL, need[request[of]], cached[request[of]])
    held, ahead, turn, since = (np.empty(len(of), dtype=np.int64) for _ in range(4))
    held[of] = life.held
    ahead[of], turn[of], since[of] = life.ahead, life.turn, life.since
    unit = (tokens - again)[of][life.decodes]
    return Batches(
        engine=engine,
        step=there.astype(np.int32),
        decided=decided[there],
        ended=np.maximum.accumulate(ended[there]) if len(there) else ended[there],
        row=np.searchsorted(at, np.arange(len(there) + 1)).astype(np.int64),
        at=at,
        request=request,
        tokens=tokens,
        held=held,
        ahead=ahead,
        turn=turn,
        since=since,
        first=_each(own, at[of], 0),
        last=_each(own, at[of], -1),
        answers=_answers(own, at[of], life.prompt),
        prompt=np.bincount(request[of][life.prompt], weights=(tokens - again)[of][life.prompt], minlength=count).astype(
            np.int64
        ),
        cached=cached,
        kept=_most(own, back.kept),
        unit=unit,
        units=np.searchsorted(request[of][life.decodes], np.arange(count + 1)).astype(np.int64),
        of=of,
        own=own,
    )


@dataclass(frozen=True)
class _Lives:
    """Of rows by request and step: ``held``, ``ahead``, ``turn``, ``since`` as in :class:`Batches`, ``decodes``: gives a token
    of the answer after the first one, ``prompt``: computes the prompt.
    """

    held: Int64
    ahead: Int64
    turn: Int64
    since: Int64
    decodes: Mask
    prompt: Mask


def _lives(rows: Rows, evicted: Evictions, prefill: Mask, need: Int64, cached: Int64) -> _Lives:
    """A row each: ``need``, tokens of the prompt to compute, huge where not known; ``cached``, those that were in the cache at
    first.
    """
    at, request, tokens, again = rows
    new = np.append(True, request[1:] != request[:-1]) if len(request) else np.zeros(0, dtype=np.bool_)
    begins = new | evicted.back
    told = _before(tokens - again, new)
    """Tokens of the text that were computed for the first time before the row."""
    answered = _since((~prefill) & (again == 0), new) | (told >= need)
    """Whether the request had begun to decode in an earlier row, or does so in this one."""
    decodes = answered & (tokens > again)
    stretch = np.cumsum(begins) - 1
    held = _before(tokens, begins) + _base(np.where(evicted.back, evicted.kept, cached), begins)
    fresh = np.bincount(
        request[~answered], weights=(tokens - again)[~answered], minlength=int(request.max(initial=0)) + 1
    )
    text = cached + np.where(answered, told + 1, fresh[request].astype(np.int64))
    """Tokens that must be in the cache before the next one of the answer."""
    return _Lives(
        held=held,
        ahead=np.where((prefill & ~answered) | (again > 0), np.maximum(text - held, tokens), 0),
        turn=_before(decodes.astype(np.int64), new),
        since=at[np.flatnonzero(begins)][stretch] if len(at) else at,
        decodes=decodes,
        prompt=~answered,
    )


def _since(what: Mask, new: Mask) -> Mask:
    """bool a row: ``what`` holds for it or an earlier one of its request."""
    total = np.cumsum(what)
    return (total - _base(total - what, new)) > 0


def _before(values: Int64, begins: Mask) -> Int64:
    """int64 a row: the sum of ``values`` of the rows before it since the last one that ``begins``."""
    total = np.cumsum(values) - values
    return total - _base(total, begins)


def _base(total: Int64, begins: Mask) -> Int64:
    """int64 a row: ``total`` at the last row that ``begins``."""
    if not len(total):
        return total
    starts = np.flatnonzero(begins)
    return total[starts][np.cumsum(begins) - 1]


def _each(own: Int64, at: Int64, which: int) -> Int64:
    """int64 a request: the step of its first (0) or last (-1) row, -1 for none."""
    has = own[1:] > own[:-1]
    out = np.full(len(own) - 1, -1, dtype=np.int64)
    out[has] = at[own[:-1][has] if which == 0 else own[1:][has] - 1]
    return out


def _most(own: Int64, values: Int64) -> Int64:
    """int64 a request: the largest of its ``values``, 0 for none."""
    out = np.zeros(len(own) - 1, dtype=np.int64)
    np.maximum.at(out, np.repeat(np.arange(len(out)), np.diff(own)), values)
    return out


def _answers(own: Int64, at: Int64, prompt: Mask) -> Int64:
    """int64 a request: the last step that computed its prompt, -1 for none."""
    out = np.full(len(own) - 1, -1, dtype=np.int64)
    request = np.repeat(np.arange(len(out)), np.diff(own))
    np.maximum.at(out, request[prompt], at[prompt])
    return out
