"""Rules for what requests ask for besides tokens: answers of a given form, adapters, and drafts that a small model makes."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.line_fields import decimal_in, whole_in
from teller_core.data.report import EvidenceItem
from teller_core.data.table import UNKNOWN, Float64, Int64
from teller_core.judge.evidence import COUNTED, HINTED, RECORDED, Clue, cost, count, line_item, step_item
from teller_core.judge.holds import STRETCHED, Bool
from teller_core.judge.intervals import overlap, span
from teller_core.judge.prepare import EMPTY_ROWS, Case
from teller_core.judge.scene import Scene, over_work

ASKED = ("vllm.received", "sglang.received")
"""Log rules of lines that tell what was asked for."""
OVERTOOK = 2
"""So many that came later must have been taken sooner: where all wait, none is passed by."""
WAITED = 30_000_000
"""ns: who waited less was not kept back."""
MOST = 0.7
"""The steps of a kind are to blame where they hold this share of the overtime,"""
SLOW, CALM = 0.5, 0.2
"""and at least the first share of them is held up in the whole capture, and at most the second share of the others."""
LEAST_STEPS = 8
"""Fewer steps of either kind compare nothing."""
TOLD_NS = 20_000_000
"""ns: the count is of the step that passed them over, and told when that one has ended."""
LONGEST_NS = 5_000_000_000
"""ns: nobody compiles for longer while nothing else is told."""
FEW_ACCEPTED = 1.35
"""Tokens a step, its own included: below it a draft hardly ever hits, and its cost is not earned back."""


class Asked(NamedTuple):
    """What requests asked for, by position: ``schema`` those with a form for the answer, ``adapter`` names."""

    schema: frozenset[int]
    adapter: dict[int, str]
    line: dict[int, int]
    """The row of the line that tells it."""


def asked(case: Case) -> Asked:
    """What the log says was asked for, read once a capture."""
    return case.once("asked", _asked)


def grammar(scene: Scene) -> Clue | None:
    """It asked for a form, and waited while later ones that did not were taken; or steps with such requests are the slow ones."""
    found = asked(scene.case).schema
    if not found:
        return _passed_over(scene)
    waited = _kept_back(scene, found) if scene.life.request in found else None
    return waited if waited is not None else _masked(scene, found)


def lora_swap(scene: Scene) -> Clue | None:
    """Steps into which an adapter came that the step before had not used are slow, and others are not."""
    adapters = asked(scene.case).adapter
    if not adapters:
        return None
    entering = scene.case.once("adapters come in", _entering)
    rows = _to_blame(scene, entering)
    if rows is None:
        return None
    more = [count("adapters in use", len(set(adapters.values())), unit="adapters", scope="capture")]
    if (line := asked(scene.case).line.get(scene.life.request)) is not None and scene.life.request in adapters:
        more.append(line_item(scene, line, "the adapter that it asked for"))
    return _of_steps(scene, "scheduler.lora_swap", rows, "steps into which an adapter came", more)


def spec_decode(scene: Scene) -> Clue | None:
    """Hardly any draft was accepted while it ran, and it took longer than its work asks for."""
    told = scene.case.once("accepted", _accepted)
    rows = [row for rule in SPECULATION for row in scene.lines(rule) if row in told]
    ns = over_work(scene)
    if not rows or ns <= 0 or scene.metric == "ttft":
        return None
    mine = float(np.median([told[row] for row in rows]))
    if mine > FEW_ACCEPTED:
        return None
    usual = float(np.median(list(told.values())))
    evidence = [
        cost("beyond what its work predicts, while drafts were made", ns, kind="log_line"),
        count("tokens a step meanwhile", mine, usual, unit="tokens", kind="log_line", scope="capture"),
    ]
    evidence += [line_item(scene, row, "how many drafts were accepted") for row in rows[:3]]
    return Clue("scheduler.spec_decode", ns, HINTED, evidence)


def _kept_back(scene: Scene, found: frozenset[int]) -> Clue | None:
    """What it waited longer than later ones that were taken before it; to its end where it never was."""
    life, table = scene.life, scene.case.capture.requests
    until = life.chosen if life.chosen != UNKNOWN else life.end
    if UNKNOWN in (life.queued, until) or not scene.span or scene.metric in ("tpot", "itl_max"):
        return None
    if until - life.queued < WAITED:
        return None
    plain = np.ones(len(table.number), np.bool_)
    plain[list(found)] = False
    past = plain & (table.queued != UNKNOWN) & (table.scheduled != UNKNOWN)
    past &= (table.queued > life.queued) & (table.scheduled < until)
    if past.sum() < OVERTOOK:
        return None
    usual = int(np.median((table.scheduled - table.queued)[past]))
    ns = overlap(span(life.queued, until), scene.low, scene.high) - usual
    if ns <= 0:
        return None
    evidence = [
        cost("it waited, though the engine had it", ns + usual, usual, kind="decision"),
        count("later requests without a form that were taken first", int(past.sum()), unit="requests", scope="capture"),
    ]
    evidence.append(line_item(scene, asked(scene.case).line[life.request], "the form that it asked for"))
    return Clue("scheduler.grammar", ns, RECORDED if life.chosen != UNKNOWN else COUNTED, evidence)


def _passed_over(scene: Scene) -> Clue | None:
    """No line tells what it asked for; but the engine counted requests that could not run yet while it waited, and neither an
    adapter nor KV of another engine was to come: what it asked for was still being compiled.
    """
    life, case = scene.life, scene.case
    if UNKNOWN in (life.queued, life.chosen) or not scene.span or scene.metric in ("tpot", "itl_max"):
        return None
    if asked(case).adapter or len(case.capture.transfers.request):
        return None
    start, stop, most = case.once("passed over", _not_ready)
    mine = (start < life.chosen) & (stop > life.queued)
    ns = overlap(span(life.queued, life.chosen), scene.low, scene.high)
    if not mine.any() or ns <= 0:
        return None
    evidence = [
        cost("it waited, though the engine had it", ns, kind="decision"),
        count("requests that could not run yet, meanwhile", float(most[mine].max()), unit="requests", scope="capture"),
    ]
    return Clue("scheduler.grammar", ns, COUNTED, evidence, decided=True)


def _not_ready(case: Case) -> tuple[Int64, Int64, Float64]:
    """From when until when requests were passed over, and how many: int64 ns twice, float64."""
    table = case.capture.readings
    rows = np.array([row for row, name in enumerate(table.name) if name == "deferred"], np.int64)
    time, value = table.start[rows], table.value[rows]
    order = np.argsort(time, kind="stable")
    time, value = time[order], value[order]
    until = np.append(time[1:], time[-1:] + LONGEST_NS)
    some = value > 0
    return time[some] - TOLD_NS, np.minimum(until, time + LONGEST_NS)[some], value[some]


def _masked(scene: Scene, found: frozenset[int]) -> Clue | None:
    """Steps that serve requests with a form take longer than their work asks for, and others do not."""
    rows = _to_blame(scene, scene.case.once("steps with a form", _with_a_form))
    if rows is None:
        return None
    more = [count("requests with a form", len(found), unit="requests", scope="capture")]
    return _of_steps(scene, "scheduler.grammar", rows, "steps that served requests with a form", more)


def _of_steps(scene: Scene, cause: str, rows: Int64, what: str, more: Sequence[EvidenceItem]) -> Clue:
    """``cause`` by the steps at ``rows`` of its holds, with ``more`` evidence besides."""
    held = scene.holds
    ns, worst = int(held.rest[rows].sum()), int(rows[np.argmax(held.rest[rows])])
    longest = step_item(
        int(held.step[worst]),
        "the longest of them",
        int(held.took[worst]),
        int(held.base[worst]),
        own=bool(held.own[worst]),
    )
    such = count("such steps", len(rows), unit="steps", scope="its_steps")
    evidence = [cost(what, ns, kind="step", scope="its_steps"), longest, such, *more]
    return Clue(cause, ns, COUNTED, evidence, step=int(held.step[worst]))


def _to_blame(scene: Scene, kind: Bool) -> Int64 | None:
    """The rows of its holds that are steps of a ``kind`` (bool a step) to which its overtime and the capture's belong."""
    held, case = scene.holds, scene.case
    known = (case.took != UNKNOWN) & (case.expected != UNKNOWN)
    slow = case.took - case.expected > STRETCHED * case.expected
    of, others = known & kind, known & ~kind
    if not held.judged or of.sum() < LEAST_STEPS or others.sum() < LEAST_STEPS:
        return None
    if slow[of].mean() < SLOW or slow[others].mean() > CALM:
        return None
    mine = np.flatnonzero(kind[held.step] & ~held.gap & (held.rest > 0))
    return mine if len(mine) and held.rest[mine].sum() >= MOST * held.rest.sum() else None


def _asked(case: Case) -> Asked:
    lines = case.capture.lines
    schema: set[int] = set()
    adapter: dict[int, str] = {}
    told: dict[int, int] = {}
    for row in [int(row) for rule in ASKED for row in case.lines.get(rule, EMPTY_ROWS)]:
        request, fields = int(lines.request[row]), json.loads(lines.fields[row])
        if request < 0 or not (fields.get("schema") or fields.get("adapter")):
            continue
        told[request] = row
        if fields.get("schema"):
            schema.add(request)
        if fields.get("adapter"):
            adapter[request] = fields["adapter"]
    return Asked(frozenset(schema), adapter, told)


def _with_a_form(case: Case) -> Bool:
    """bool a step: whether it serves a request that asked for a form."""
    part, mask = case.capture.participation, np.zeros(len(case.begin), np.bool_)
    mask[part.step[np.isin(part.request, list(asked(case).schema))]] = True
    return mask


def _entering(case: Case) -> Bool:
    """bool a step: whether it serves an adapter that the step of its engine before did not."""
    part, adapters = case.capture.participation, asked(case).adapter
    served: dict[int, set[str]] = {}
    for step, request in zip(part.step.tolist(), part.request.tolist(), strict=True):
        if request in adapters:
            served.setdefault(step, set()).add(adapters[request])
    mask = np.zeros(len(case.begin), np.bool_)
    for engine in case.engines.values():
        before: set[str] = set()
        for step in engine.step.tolist():
            now = served.get(step, set[str]())
            mask[step] = bool(now - before)
            before = now
    return mask


def _accepted(case: Case) -> dict[int, float]:
    """Tokens a step that each line tells of, by its row."""
    found: dict[int, float] = {}
    for rule, told in SPECULATION.items():
        for row in map(int, case.lines.get(rule, EMPTY_ROWS)):
            length = told(json.loads(case.capture.lines.fields[row]))
            if length is not None:
                found[row] = length
    return found


def _told(name: str):
    def length(fields: dict[str, str]) -> float | None:
        return decimal_in(fields, name)

    return length


def _of_rate(fields: dict[str, str]) -> float | None:
    """From the share of drafts that were accepted: of so many in a row each counts only where all before it did (Leviathan et
    al. 2023, "Fast inference from transformers via speculative decoding", equation 1).
    """
    rate, drafts = decimal_in(fields, "acceptance"), whole_in(fields, "speculative")
    return (1 - rate ** (drafts + 1)) / (1 - rate) if drafts and rate is not None and rate < 1 else None


SPECULATION = {
    "vllm.speculation": _told("mean_acceptance_length"),
    "vllm.speculation.v0": _of_rate,
    "sglang.decode": _told("accept_length"),
}
"""Log rules that tell how many tokens a step made, and how to read it from their fields."""
