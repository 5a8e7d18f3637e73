"""Rules for causes in the scheduler: waiting for admission, other requests' prompts, evictions, a missed prefix."""

import json
from typing import NamedTuple

import numpy as np

from teller_core.data.line_fields import whole_in
from teller_core.data.steps import Role
from teller_core.data.table import UNKNOWN, Int64
from teller_core.judge.beside import BESIDE, Arrivals, arrivals
from teller_core.judge.evidence import COUNTED, HINTED, RECORDED, Clue, cost, count, line_item, step_item
from teller_core.judge.intervals import overlap, overlaps, span
from teller_core.judge.levels import CACHED, CACHED_SHARE, level
from teller_core.judge.prepare import Case
from teller_core.judge.scene import Scene, over_work
from teller_core.judge.shortage import crowded

DOUBLED = 1.0
"""Other prompts interfere where they add at least this many times what the step would take: ordinary batches add less."""
LONG_TIMES = 3
"""A step carries a long prompt where its prompt tokens are this many times those that are computed of the capture's median
prompt, and of its own: who asks for as much as others waits for its like. What a cache holds of a prompt nobody computes.
"""
LONGER = 1.25
"""And this many times the tokens of the median text: a prompt of which no more are computed may have missed a cache."""
SHARED_PREFIX = 0.3
"""Requests of a capture share a prefix where half of them found at least this share of their prompt in the cache."""
MISSED = 0.05
"""A request that found at most this share of its prompt in the cache has missed it."""
FULL = 0.9
"""A KV cache of which so much is in use evicts."""
MOST_BLOCK = 256
"""Tokens of a cache's block, at most: what all that was found is a multiple of, and is more than this, is chance."""
FORCED = "forcing full prompt re-processing"
"""What llama.cpp writes where it has to compute a prompt again."""
QUEUES = (("vllm.stats", "waiting"), ("sglang.decode", "queue"), ("sglang.prefill", "queue"))
"""Log rules that report how many requests wait, and the field that says it."""
LONG_PROMPT = 256
"""Tokens: a shorter prompt costs too little for a cache to matter."""


def queue_saturation(scene: Scene) -> Clue | None:
    """It waited to be admitted, and what ran meanwhile ran at its usual pace."""
    life = scene.life
    if UNKNOWN in (life.queued, life.chosen) or not scene.span:
        return _never_admitted(scene) or _reported_queue(scene)
    since = max(life.queued, int(life.engine.begin[0])) if life.engine and len(life.engine.begin) else life.queued
    waited = overlap(span(since, life.chosen), scene.low, scene.high)  # before its first step the engine was not up
    waited -= overlap(scene.case.stalls, since, life.chosen)
    held = scene.holds
    inside = overlaps(span(since, life.chosen), held.low, held.high)
    charged = int((inside * (held.over - held.rest) // np.maximum(held.high - held.low, 1)).sum())
    first = int(held.took[0]) if len(held.took) else 0
    alone, beside_others = max(waited - charged - first, 0), crowded(scene)
    ns = alone + beside_others
    if ns <= 0:
        return None
    running, waiting = load_at(scene, life.queued)
    evidence = [cost("time in the queue that nothing else explains", alone, kind="decision")] if alone else []
    if beside_others:
        evidence.append(cost("beyond what its work predicts, in full steps while others waited", beside_others))
    evidence += [
        count("requests running when it arrived", running, unit="requests", scope="capture"),
        count("requests waiting when it arrived", waiting, unit="requests", scope="capture"),
    ]
    sure = RECORDED if waiting or running else HINTED
    return Clue("scheduler.queue_saturation", ns, sure, evidence)


def _never_admitted(scene: Scene) -> Clue | None:
    """The engine got it and recorded what it ran, and it was not among that until its caller gave up."""
    life, case = scene.life, scene.case
    others = np.delete(case.capture.requests.scheduled, life.request)
    if UNKNOWN in (life.queued, life.end) or life.chosen != UNKNOWN or life.taken or not (others != UNKNOWN).any():
        return None
    if int(case.capture.requests.first_token[life.request]) != UNKNOWN or scene.metric not in ("e2e", "slo"):
        return None
    ns = life.end - life.queued
    evidence = [
        cost("time in the queue, which it did not leave", ns, kind="decision"),
        count("requests of the capture that ran", int((others != UNKNOWN).sum()), unit="requests", scope="capture"),
    ]
    waiting = [row for rule, field in QUEUES for row in scene.lines(rule) if _number(case, row, field) > 0]
    evidence += [line_item(scene, row, "requests waiting, in the log") for row in waiting[:2]]
    return Clue("scheduler.queue_saturation", ns, COUNTED, evidence)


def _number(case: Case, row: int, field: str) -> int:
    return whole_in(json.loads(case.capture.lines.fields[row]), field) or 0


def _reported_queue(scene: Scene) -> Clue | None:
    """Without times of its own: the log reported waiting requests while it was there, and it took longer than its work asks."""
    lines = scene.case.capture.lines
    rows = [row for rule, _ in QUEUES for row in scene.lines(rule)]
    if not rows:
        return None
    name = dict(QUEUES)
    found = {row: _number(scene.case, row, name[lines.rule[row]]) for row in rows}
    most = max(found, key=lambda row: found[row], default=None)
    ns = over_work(scene)
    if most is None or found[most] <= 0 or ns <= 0:
        return None
    evidence = [
        cost("beyond what its work predicts, while requests waited", ns, kind="log_line"),
        count("requests waiting at once", found[most], unit="requests", kind="log_line", scope="capture"),
        line_item(scene, most, "requests waiting, in the log"),
    ]
    return Clue("scheduler.queue_saturation", ns, HINTED, evidence)


def prefill_interference(scene: Scene) -> Clue | None:
    """Steps that it needed, or waited for, carried so many prompt tokens of others that they took several times as long."""
    held = scene.holds
    blocking = (held.prompts > 0) & (held.base != UNKNOWN) & (held.took - held.base >= DOUBLED * held.base)
    if scene.metric != "itl_max":  # over many steps ordinary prompts add up to an ordinary load
        own = int(scene.case.once("computed of prompts", _computed)[scene.life.request])
        longest = scene.case.once("longest prompts", _longest).beside(scene.life.request)[held.step]
        longest = np.where(longest > 0, np.minimum(longest, held.others), held.others)
        usual, text = scene.case.once("usual prompt", _usual_prompt)
        blocking &= longest >= max(LONG_TIMES * max(usual, own), LONGER * text)
    ns = int(held.prompts[blocking].sum())
    if ns <= 0:
        return None
    rows = np.flatnonzero(blocking)
    worst = int(rows[np.argmax(held.prompts[rows])])
    step = int(held.step[worst])
    evidence = [
        cost("steps that computed prompts of other requests", ns, kind="step", scope="its_steps"),
        step_item(step, "the longest of them", int(held.took[worst]), int(held.base[worst]), own=bool(held.own[worst])),
        count("prompt tokens of other requests in it", int(held.others[worst]), unit="tokens", scope="its_steps"),
        count("such steps", len(rows), unit="steps", scope="its_steps"),
    ]
    return Clue("scheduler.prefill_interference", ns, COUNTED, evidence, step=step)


class _Longest(NamedTuple):
    """A step each: ``tokens`` int64 of the request of whose prompt it computed most, and ``whose`` int64 position (-1: of nobody
    known); ``next`` int64: of the one with the next most.
    """

    tokens: Int64
    whose: Int64
    next: Int64

    def beside(self, request: int) -> Int64:
        """int64 a step: the most tokens that it computed of one prompt of another request; 0 where nobody knows of any."""
        return np.where(self.whose == request, self.next, self.tokens)


def _longest(case: Case) -> _Longest:
    """Ordinary prompts that came at once add up in a step, and none of them is long."""
    part, count = case.capture.participation, len(case.begin)
    rows = np.flatnonzero(part.role == Role.PREFILL)
    rows = rows[np.lexsort((part.tokens[rows], part.step[rows]))]
    step, tokens = part.step[rows], part.tokens[rows].astype(np.int64)
    last = np.flatnonzero(np.append(step[1:] != step[:-1], True)[: len(step)])
    most, whose, following = np.zeros(count, np.int64), np.full(count, -1, np.int64), np.zeros(count, np.int64)
    most[step[last]], whose[step[last]] = tokens[last], part.request[rows][last]
    second = last[(last > 0) & (step[last - 1] == step[last])]
    following[step[second]] = tokens[second - 1]
    return _Longest(most, whose, following)


def kv_preemption(scene: Scene) -> Clue | None:
    """It was evicted while it ran, and its tokens were computed again; or the log says that requests like it were."""
    table, steps = scene.case.capture.requests, scene.life.step
    evictions = max(int(table.preemptions[scene.life.request]), len(scene.life.evicted.start))
    lines = [*scene.lines("vllm.preempted"), *scene.lines("sglang.retracted")]
    blind = not len(steps) and bool(lines)
    if evictions <= 0 and not blind:
        return _kept_out(scene)
    before = _kept_out(scene)
    away = scene.during(scene.life.evicted) + scene.during(scene.life.recompute) + (before.ns if before else 0)
    ns = over_work(scene) if blind else away
    if ns <= 0:
        return None
    name = (
        "beyond what its work predicts, while the log tells of evictions"
        if blind
        else "time evicted and computing again, and not admitted because of such"
        if before
        else "time evicted and computing again"
    )
    evidence = [
        cost(name, ns, kind="decision"),
        count("evictions", max(evictions, len(lines)), unit="times", kind="decision"),
    ]
    evidence += before.evidence if before else []
    if (again := int(scene.life.recomputed.clip(0).sum())) > 0:
        evidence.append(count("tokens computed again", again, unit="tokens", kind="decision"))
    usage = scene.case.capture.steps.kv_usage[steps]
    if len(usage) and not np.isnan(usage).all():
        highest = 100 * float(np.nanmax(usage))
        evidence.append(count("highest KV cache use in its steps", highest, unit="%", scope="its_steps"))
    evidence += [line_item(scene, row, "an eviction in the log") for row in lines[:3]]
    sure = HINTED if blind else RECORDED
    return Clue("scheduler.kv_preemption", ns, sure, evidence, step=_first_recompute(scene))


def _kept_out(scene: Scene) -> Clue | None:
    """It waited for admission while the cache was full and the scheduler evicted requests that ran: these come before it."""
    life, steps = scene.life, scene.case.capture.steps
    if UNKNOWN in (life.queued, life.chosen) or not scene.span:
        return None
    waited = overlap(span(life.queued, life.chosen), scene.low, scene.high)
    beside_others = crowded(scene)
    ns = waited + beside_others
    until = life.last if beside_others else life.chosen
    during = (scene.case.begin >= life.queued) & (scene.case.begin <= until)
    evicted, usage = int(steps.preempted[during].clip(0).sum()), steps.kv_usage[during]
    full = bool(len(usage)) and not np.isnan(usage).all() and float(np.nanmax(usage)) >= FULL
    if not (evicted and full) or ns <= 0:
        return None
    evidence = [
        cost(
            "time in the queue, and in full steps, while requests that ran were evicted"
            if beside_others
            else "time in the queue while requests that ran were evicted",
            ns,
            kind="decision",
        ),
        count("evictions meanwhile", evicted, unit="times", kind="decision", scope="capture"),
        count("highest KV cache use meanwhile", 100 * float(np.nanmax(usage)), unit="%", scope="capture"),
    ]
    return Clue("scheduler.kv_preemption", ns, COUNTED, evidence)


def prefix_cache_miss(scene: Scene) -> Clue | None:
    """It found nothing of a prompt that its peers found much of."""
    table, request = scene.case.capture.requests, scene.life.request
    known = int(table.cached_tokens[request]) >= 0
    each = _token_cost(scene)
    if not known or int(table.prompt_tokens[request]) < LONG_PROMPT or each is None:
        return None
    usual, prompt = scene.case.once("cached share", _cached_share), int(table.prompt_tokens[request])
    if usual < SHARED_PREFIX:
        return None
    whole = int(table.cached_tokens[request]) <= MISSED * prompt
    found = int(usual * prompt) if whole else min(scene.case.once("cached", _cached), prompt)
    missed = found - int(table.cached_tokens[request])
    lasts = missed > scene.case.once("block", _block) and _alike(scene, missed)
    if not (whole or lasts):
        return None
    ns = int(missed * each)
    evidence = [
        cost("computing what its peers found in the cache", ns),
        count("prompt tokens found in the cache", int(table.cached_tokens[request]), found, unit="tokens"),
        count("prompt tokens", prompt, unit="tokens"),
    ]
    evidence += [line_item(scene, row, "the engine says so") for row in _forced(scene)[:1]]
    return Clue("scheduler.prefix_cache_miss", ns, COUNTED, evidence, singled=_beside(scene), decided=lasts)


def _alike(scene: Scene, missed: int) -> bool:
    """Whether most of the requests that came just before and just after it missed about as much, or all of either: else their
    prompts began with something new, which the first of them has to compute.
    """
    cached, prompt = scene.case.capture.requests.cached_tokens, scene.case.capture.requests.prompt_tokens
    usual = scene.case.once("cached", _cached)
    before, after = (
        [2 * (min(usual, int(prompt[one])) - int(cached[one])) >= missed for one in near] for near in _near(scene)
    )
    most = 2 * (sum(before) + sum(after)) > len(before) + len(after) > BESIDE
    return most or any(len(side) == BESIDE and all(side) for side in (before, after))


def _cached(case: Case) -> int:
    """Tokens of a prompt that were found in the cache: the median of the requests of which it is known, or learned elsewhere."""
    cached = case.capture.requests.cached_tokens
    return int(level(case.assessment, CACHED, float(np.quantile(cached[cached >= 0], 0.5, method="lower"))))


def _block(case: Case) -> int:
    """Tokens of what a cache finds as a whole, 0 where that is not known: prompts that part inside of one find one less than
    those that go on alike.
    """
    cached = case.capture.requests.cached_tokens
    block = int(np.gcd.reduce(cached[cached > 0], initial=0))
    return block if block <= MOST_BLOCK else 0


def _token_cost(scene: Scene) -> float | None:
    """ns that a prompt token takes: by the steps, else by the request's own way to its first token; None where neither tells."""
    if not np.isnan(scene.case.context_cost):
        return scene.case.context_cost
    table, request, life = scene.case.capture.requests, scene.life.request, scene.life
    computed = int(table.prompt_tokens[request]) - int(table.cached_tokens[request])
    if UNKNOWN in (life.chosen, life.first) or computed <= 0 or len(life.step):
        return None
    return max(life.first - life.chosen, 0) / computed


def _forced(scene: Scene) -> list[int]:
    """Lines in which the engine says that it computes the request's whole prompt again."""
    text = scene.case.capture.lines.untrusted_text
    return [row for row in scene.lines("llamacpp.slot") if FORCED in text[row]]


def _beside(scene: Scene) -> bool:
    """Whether the requests that came just before and just after it found much of their prompts."""
    table = scene.case.capture.requests
    before, after = (
        [int(table.cached_tokens[one]) > MISSED * int(table.prompt_tokens[one]) for one in near]
        for near in _near(scene)
    )
    found = [*before, *after]
    return len(found) > BESIDE and sum(found) > len(found) // 2 and any(found[:BESIDE]) and any(found[-BESIDE:])


def _near(scene: Scene) -> tuple[list[int], list[int]]:
    """The requests that came just before and just after it, of which it is known how much they found."""
    return scene.case.once("arrivals, cached tokens known", _told_cached).beside(scene.life.request)


def _told_cached(case: Case) -> Arrivals:
    return arrivals(case, case.capture.requests.cached_tokens >= 0)


def _cached_share(case: Case) -> float:
    """The median share of a prompt that was found in the cache, of requests of which it is known (at least one), or learned."""
    table = case.capture.requests
    known = (table.cached_tokens >= 0) & (table.prompt_tokens > 0)
    own = float(np.median(table.cached_tokens[known] / table.prompt_tokens[known]))
    return level(case.assessment, CACHED_SHARE, own)


def cache_levels(case: Case) -> dict[str, float]:
    """What prompts find in the cache here, by name (see :mod:`levels`)."""
    table = case.capture.requests
    if not ((table.cached_tokens >= 0) & (table.prompt_tokens > 0)).any():
        return {}
    return {CACHED: float(_cached(case)), CACHED_SHARE: _cached_share(case)}


def _usual_prompt(case: Case) -> tuple[float, float]:
    """Tokens that are computed of the capture's median prompt, and those of the median text; 0 where none is known."""
    text = case.capture.requests.prompt_tokens
    each = (case.once("computed of prompts", _computed)[text > 0], text[text > 0])
    return (float(np.median(each[0])), float(np.median(each[1]))) if len(each[0]) else (0.0, 0.0)


def _computed(case: Case) -> Int64:
    """int64 a request: the tokens of its prompt that no cache held, as far as anybody knows; 0 where no prompt is known."""
    table = case.capture.requests
    return (table.prompt_tokens.astype(np.int64) - table.cached_tokens.clip(0)).clip(0)


class _Arrivals(NamedTuple):
    """int64 ns, ascending: when requests began to run and when these were over, when they came and when these began to run."""

    ran: Int64
    over: Int64
    came: Int64
    chosen: Int64


def _arrivals(case: Case) -> _Arrivals:
    table, ends = case.capture.requests, case.ends
    started = table.scheduled != UNKNOWN
    ran, came = started & (ends != UNKNOWN), table.queued != UNKNOWN
    return _Arrivals(
        np.sort(table.scheduled[ran]),
        np.sort(np.maximum(table.scheduled, ends)[ran]),
        np.sort(table.queued[came]),
        np.sort(np.maximum(table.scheduled, table.queued)[came & started]),
    )


def load_at(scene: Scene, time: int) -> tuple[int, int]:
    """Requests that ran and that waited, besides this one, at a time."""
    ran, over, came, chosen = (
        int(np.searchsorted(times, time, "right")) for times in scene.case.once("arrivals", _arrivals)
    )
    table, request = scene.case.capture.requests, scene.life.request
    queued, scheduled, end = int(table.queued[request]), int(table.scheduled[request]), int(scene.case.ends[request])
    started = scheduled != UNKNOWN and scheduled <= time
    own_wait = queued != UNKNOWN and queued <= time and not started
    return ran - over - int(started and end != UNKNOWN and end > time), came - chosen - int(own_wait)


def _first_recompute(scene: Scene) -> int | None:
    again = np.flatnonzero(scene.life.recomputed > 0)
    return int(scene.life.step[again[0]]) if len(again) else None
