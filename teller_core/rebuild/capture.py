"""From what files say to one capture: recording and trees in, ranks, steps, requests and log lines out.

The order matters: zones before joins, joins by order before times, clocks before waits, and who took part at the end.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Absences, Capture, Collectives, Disagreements, Meetings, Rank
from teller_core.data.records import Recording
from teller_core.data.steps import Lines, Steps, StepWork
from teller_core.data.steps import Mapping as HowKnown
from teller_core.data.table import take
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.rebuild.absences import absences
from teller_core.rebuild.align import align_lines
from teller_core.rebuild.annotations import Annotated, annotated
from teller_core.rebuild.balance import balance
from teller_core.rebuild.called import all_calls
from teller_core.rebuild.clocks import bound_clocks
from teller_core.rebuild.collective_keys import keyed, meetings
from teller_core.rebuild.collectives import collective_tables
from teller_core.rebuild.disagreements import disagreements, stalled
from teller_core.rebuild.engines import Life, Place, lives
from teller_core.rebuild.inferred import inferred_members
from teller_core.rebuild.line_of_steps import Slot
from teller_core.rebuild.line_times import placed_by_lines
from teller_core.rebuild.operators import with_operators
from teller_core.rebuild.ranks import Ranked, Traced, build_ranks, clocks_apart, facts_by_rank, trace_places
from teller_core.rebuild.readings import build_readings
from teller_core.rebuild.recorded import Parts, recorded_parts
from teller_core.rebuild.request_table import facts_by_line, prompt_tokens, request_table
from teller_core.rebuild.requests import Registry, join_requests
from teller_core.rebuild.resources import build_pauses, build_samples, sum_metrics, tier
from teller_core.rebuild.rings import rings
from teller_core.rebuild.slower import count_slower
from teller_core.rebuild.step_table import Members, participation, untimed_steps, with_members, with_work
from teller_core.rebuild.steps import join_steps
from teller_core.rebuild.together import together
from teller_core.rebuild.work import step_work
from teller_core.rebuild.zones import on_unix_clock


def rebuild(recording: Recording, trees: Sequence[Tree], *, capture_id: str, name: str) -> Capture:
    """The capture of ``recording``; ``trees[i]`` is the tree of ``recording.traces[i]``.

    Raises ValueError where there is not one tree a trace. What cannot be joined is counted in ``Capture.problems``.
    """
    if len(trees) != len(recording.traces):
        raise ValueError("there must be one tree a trace")
    problems: Counter[str] = Counter()
    recording = on_unix_clock(recording, problems)
    traced = trace_places(recording)
    known = with_operators(recording, trees, traced.places, problems)
    joined = _joined(recording, [annotated(tree) for tree in known.trees], traced.places, problems)
    ranked = known.marked(build_ranks(recording, known.trees, traced))
    work = step_work(recording, joined.slots, ranked, joined.annotations, problems)
    ranks, collectives, met = _met(recording, ranked, traced, work, problems)
    work = _on_one_clock(work, ranks)
    steps, members, guessed = _steps(recording, joined, work, problems)
    requests, tokens, transfers = request_table(
        recording,
        joined.registry.entries,
        prompts=joined.prompts,
        steps=steps,
        parts=joined.parts,
        engines=_engines(joined),
        problems=problems,
    )
    absent, disagreeing = _came(recording, ranks, problems)
    readings, buckets = build_readings(recording, problems)
    count_slower(recording, problems)
    capture = Capture(
        id=capture_id,
        name=name,
        engine=recording.engine,
        files=recording.files,
        ranks=ranks,
        steps=placed_by_lines(recording, joined.slots, steps),
        work=work,
        requests=requests,
        participation=participation(members, guessed),
        tokens=tokens,
        lines=_lines(recording, joined, steps, problems),
        pauses=build_pauses(recording),
        samples=build_samples(recording, problems),
        collectives=collectives,
        meetings=met,
        absences=absent,
        disagreements=disagreeing,
        transfers=transfers,
        readings=readings,
        buckets=buckets,
        metrics=sum_metrics(recording),
        redactions=recording.redactions,
        joined=known.by_rank(ranked),
        balance=balance(recording, joined.registry, problems),
        tier=tier(recording, _profiled(work, ranks), len(joined.slots)),
    )
    return replace(capture, problems={name: count for name, count in problems.items() if count})


def _lines(recording: Recording, joined: "_Joined", steps: Steps, problems: Counter[str]) -> Lines:
    return align_lines(
        recording,
        steps,
        step_of_iteration={slot.iteration: step for step, slot in enumerate(joined.slots)},
        request_of_line=facts_by_line(joined.registry.entries),
        engine_places=_engine_places(joined.found),
        problems=problems,
    )


def _met(
    recording: Recording, ranked: Ranked, traced: Traced, work: StepWork, problems: Counter[str]
) -> tuple[list[Rank], Collectives, Meetings]:
    """The ranks on one clock, their collectives, and which of these were one."""
    apart = clocks_apart(ranked, traced, recording.clocks)
    facts = facts_by_rank(recording, ranked)
    calls = keyed(all_calls(ranked, work, facts), facts, ranked.ranks, apart, problems)
    met = together(meetings(calls))
    ranks, clocks = bound_clocks(ranked.ranks, ranked.places, apart, met, problems)
    return ranks, *collective_tables(calls, met, ranks, clocks)


def _came(recording: Recording, ranks: Sequence[Rank], problems: Counter[str]) -> tuple[Absences, Disagreements]:
    """Who did not come to a collective, and what ranks recorded of theirs that does not fit together."""
    told = rings(recording, ranks, problems)
    without_end = stalled(told)
    return absences(told, frozenset(without_end)), disagreements(told, without_end)


class _Joined(NamedTuple):
    """Which records belong together, told before any two clocks are compared. ``annotations``: one a tree; ``prompts``: tokens
    of each request of ``registry``, -1 where not known.
    """

    annotations: Sequence[Annotated]
    found: Sequence[Life]
    slots: Sequence[Slot]
    registry: Registry
    prompts: Sequence[int]
    parts: Parts


def _joined(
    recording: Recording, annotations: Sequence[Annotated], places: Sequence[Place], problems: Counter[str]
) -> _Joined:
    found = lives(recording, annotations, places, problems)
    slots = join_steps(recording, annotations, found, problems)
    registry = join_requests(recording, problems)
    prompts = prompt_tokens(recording, registry.entries)
    return _Joined(annotations, found, slots, registry, prompts, recorded_parts(recording, slots, registry, prompts))


def _steps(
    recording: Recording, joined: _Joined, work: StepWork, problems: Counter[str]
) -> tuple[Steps, Members, Members]:
    """The steps, and who took part in them: as it was recorded, and as it is inferred."""
    bare = untimed_steps(recording, joined.slots, joined.found, joined.annotations, joined.parts.evicted)
    members = _members(joined.parts)
    steps = with_members(with_work(bare, work, problems), members, HowKnown.RECORDED, problems)
    guessed = inferred_members(
        recording,
        slots=joined.slots,
        found=joined.found,
        entries=joined.registry.entries,
        prompts=joined.prompts,
        steps=steps,
        named=joined.parts.named,
        problems=problems,
    )
    return with_members(steps, guessed, HowKnown.INFERRED, problems), members, guessed


def _on_one_clock(work: StepWork, ranks: Sequence[Rank]) -> StepWork:
    shift = np.array([rank.shift for rank in ranks] or [0], dtype=np.int64)[work.rank]
    return replace(work, start=work.start + shift, stop=work.stop + shift)


def _members(parts: Parts) -> Members:
    rows = [
        (part.step, request, part.tokens, part.recomputed, int(part.role), part.before)
        for request, of in parts.of.items()
        for part in of
    ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    return Members(*columns, confidence=np.ones(len(rows), dtype=np.float64))


def _engines(joined: _Joined) -> list[int]:
    """The engine of each request: that of its steps; the only one; -1 where there are several."""
    numbers, parts = {life.engine for life in joined.found}, joined.parts.of
    only = next(iter(numbers)) if len(numbers) == 1 else -1
    return [
        joined.found[joined.slots[parts[i][0].step].life].engine if parts.get(i) else only
        for i in range(len(joined.registry.entries))
    ]


def _engine_places(found: Sequence[Life]) -> dict[Place, int]:
    places = {where: life.engine for life in found for where in life.executions}
    return places | {life.decider: life.engine for life in found if life.decider is not None}


def _profiled(work: StepWork, ranks: Sequence[Rank]) -> StepWork:
    """The rows of ``work`` on ranks whose trace holds operators or kernels: ranges alone are no profile."""
    deep = [
        rank.tree is not None
        and any(bool((rank.tree.trace.layer == layer).any()) for layer in (Layer.OPERATOR, Layer.KERNEL))
        for rank in ranks
    ]
    return take(work, np.array(deep or [False], dtype=np.bool_)[work.rank])
