"""From numbers to a verdict on one request: which causes cost it how much, how sure that is, and what was not seen."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from teller_core.data import losses
from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.causes import cause
from teller_core.data.dates import date_of
from teller_core.data.linked import Linked
from teller_core.data.report import Coverage, Finding, Metric, Part, Verdict, WhyReport
from teller_core.data.steps import Mapping
from teller_core.data.table import UNKNOWN
from teller_core.judge.breakdown import phase_ns
from teller_core.judge.claims import claimed, heard
from teller_core.judge.evidence import Clue, ms
from teller_core.judge.lookalikes import against
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.questions import Answers, ask
from teller_core.judge.savings import Saved, by_saving, together
from teller_core.judge.scene import Scene, scene
from teller_core.judge.side_by_side import side_by_side

LEAST_SHARE = 0.1
"""Of what the metric measures: less need not be explained."""
COARSE_NS = 10_000_000_000
"""Below this, times that are true to a second only say nothing about how long a request should have taken."""
UNASKED = {"over_work": "what its work predicts", "over_load": "what its load predicts"}
"""What a request could not be held against, in the words of an answer."""


class Said(NamedTuple):
    """A verdict with its reason, and how sure it is."""

    verdict: Verdict
    reason: str
    confidence: float


def diagnose_all(capture: Capture, assessment: Assessment) -> list[WhyReport]:
    """The answer for every request of the capture, by end-to-end time, in their order."""
    return list(diagnose_each(capture, assessment))


def diagnose_each(
    capture: Capture,
    assessment: Assessment,
    link: Callable[[int], Linked | None] | None = None,
) -> Iterator[WhyReport]:
    """:func:`diagnose_all`, each answer when it is asked for. ``link`` gives the rows of a step with their dependencies: with it,
    findings say what their end would save there.
    """
    case = prepare(capture, assessment, link)
    for request in range(len(capture.requests.number)):
        yield judge(case, request)


def diagnose(
    capture: Capture,
    assessment: Assessment,
    request: int,
    metric: Metric = "e2e",
    slo_ns: int | None = None,
    *,
    earlier: WhyReport | None = None,
    link: Callable[[int], Linked | None] | None = None,
) -> WhyReport:
    """Why the request at position ``request`` took what it took by ``metric``; the explanation is left empty.

    ``earlier`` is an answer for the same request made while its trees were at hand: its resources, tier and coverage are kept,
    and what it says of savings where it was held against the same.
    ``link`` as in :func:`diagnose_each`.
    """
    return judge(prepare(capture, assessment, link), request, metric, slo_ns, earlier)


def judge(
    case: Case, request: int, metric: Metric = "e2e", slo_ns: int | None = None, earlier: WhyReport | None = None
) -> WhyReport:
    """:func:`diagnose` on a capture that is prepared already."""
    view = scene(case, request, metric)
    shares, note = side_by_side(view)
    answers = ask(case, request, metric, slo_ns)
    found = by_saving(view, claimed(view, answers, heard(view)), earlier)
    clues = [clue for clue, _ in found]
    said = verdict_of(view, answers, clues)
    table = case.capture.requests
    return WhyReport(
        capture=case.capture.id,
        request=int(table.number[request]),
        engine_id=table.engine_id[request] or table.client_id[request] or None,
        metric=metric,
        began=date_of(view.life.begin),
        value_ms=None if answers.value == UNKNOWN else ms(answers.value),
        verdict=said.verdict,
        reason=said.reason,
        tier=_tier(view) if earlier is None else earlier.tier,
        coverage=_coverage(view) if earlier is None else earlier.coverage,
        confidence=said.confidence,
        over_slo=answers.over_slo,
        over_work=answers.over_work,
        over_load=answers.over_load,
        phases=view.phases,
        resources=_resources(view, earlier),
        findings=[finding_of(view, clue, clues, saved) for clue, saved in found],
        together=together(view, found, earlier),
        explanation="",
        next_checks=[],
        not_seen=_not_seen(view, answers),
        ranks=shares,
        ranks_note=note,
        finish_reason=table.finish_reason[request] or None,
        reference=case.assessment.reference,
    )


def finding_of(view: Scene, clue: Clue, clues: Sequence[Clue], saved: Saved) -> Finding:
    """``clue``, which is one of the ``clues`` that are told, as a finding; ``saved``: what its end would save."""
    about = cause(clue.cause)
    return Finding(
        cause=clue.cause,
        title=about.title,
        step=clue.step,
        rank=None if clue.rank is None else _rank(view, clue.rank),
        view=clue.view,
        operator=clue.operator,
        layer=clue.layer,
        confidence=_sure(view, clue, clues),
        cost_ms=ms(clue.ns),
        saving_ms=saved.middle,
        saving_low_ms=saved.low,
        saving_high_ms=saved.high,
        saving_assumes=saved.assumes,
        rescheduled_ms=saved.anew.middle,
        rescheduled_low_ms=saved.anew.low,
        rescheduled_high_ms=saved.anew.high,
        rescheduled_assumes=saved.anew.assumes,
        evidence=clue.evidence,
        fix=about.fix,
        against=against(view, clue.cause, clue.ns),
    )


def _rank(view: Scene, position: int) -> int:
    """What people call the rank at a position of the capture's table: several traces of one process are several positions."""
    ranks = view.case.capture.ranks
    number = ranks[position].rank if position < len(ranks) else position
    return number if number >= 0 else position


def _sure(view: Scene, clue: Clue, clues: Sequence[Clue]) -> float:
    """How direct its evidence is, lowered where the steps are only inferred to be its own, where other causes cost as much, and
    where it is claimed of requests of which all is well.
    """
    mapped = view.life.confidence if view.life.mapping == Mapping.INFERRED else 1.0
    share = clue.ns / max(sum(other.ns for other in clues), 1)
    learned = view.case.assessment.learned
    told = 1.0 if learned is None else 1.0 - learned.claims.of(clue.cause, view.metric)[0]
    return round(clue.confidence * mapped * (0.6 + 0.4 * share) * told, 2)


def verdict_of(view: Scene, answers: Answers, clues: Sequence[Clue]) -> Said:
    """What a request comes to of which ``clues`` are told, the first one first."""
    if clues:
        about = cause(clues[0].cause)
        return Said("cause", f"{about.title}: {plain_ms(ms(clues[0].ns))} ms of it", _sure(view, clues[0], clues))
    if reason := _cannot_tell(view, answers):
        besides = "; besides, some of what was recorded could not be read" if losses.gone(_lost(view)) else ""
        return Said("could_not_tell", f"{reason}{besides}", 0.0)
    if reference := view.case.assessment.reference:
        return Said("normal", f"it took what {reference} says that it should", 0.8)
    return Said("typical_here", "it took about what its work and its load predict from its peers in this capture", 0.8)


def plain_ms(value: float) -> str:
    """Milliseconds as a reason has them."""
    return str(int(value)) if value.is_integer() else str(value)


def _cannot_tell(view: Scene, answers: Answers) -> str | None:
    """Why no verdict is possible, None where one is."""
    if answers.value == UNKNOWN:
        return f"because {answers.why['value']}"
    if view.life.coarse and answers.value < COARSE_NS:
        return "because its times are whole seconds of a log, too coarse for so short a request"
    if answers.slow:
        return _unexplained(view)
    if answers.over_work is None and answers.over_load is None:
        return f"because there are {answers.why['over_work']}"
    return None


def _unexplained(view: Scene) -> str:
    if view.life.mapping == Mapping.UNKNOWN:
        return f"because {view.life.dark} is not known, and nothing recorded besides explains its time"
    dark = phase_ns(view.phases, "unexplained")
    if view.span and dark > LEAST_SHARE * view.span:
        return "because much of its time is covered by nothing recorded"
    return "because its steps took longer than they should, and nothing recorded explains that"


def _tier(view: Scene) -> int:
    """The best evidence about this very request."""
    best = view.case.capture.tier
    if view.profiled:
        return best
    has_times = UNKNOWN not in (view.life.begin, view.life.end)
    by_mapping = {Mapping.RECORDED: 3, Mapping.INFERRED: 2, Mapping.UNKNOWN: 1 if has_times else 0}
    return min(best, by_mapping[view.life.mapping])


def _coverage(view: Scene) -> Coverage:
    mapping = view.life.known
    return Coverage(
        steps=view.life.taken if mapping != Mapping.UNKNOWN else None,
        profiled=view.profiled,
        mapping="recorded" if mapping == Mapping.RECORDED else "inferred" if mapping == Mapping.INFERRED else "unknown",
        lost=_lost(view),
    )


def _lost(view: Scene) -> dict[str, int]:
    """What was lost between the files and the capture, and bears on this request."""
    profiled = view.profiled > 0
    return view.case.once(f"lost, profiled {profiled}", lambda case: _bearing(case, profiled))


def _bearing(case: Case, profiled: bool) -> dict[str, int]:
    kinds = (losses.REQUESTS, losses.STEPS, losses.CLOCKS, losses.COUNTERS)
    return losses.bearing(losses.problems_of(case.capture), (*kinds, losses.SPANS) if profiled else kinds)


def _resources(view: Scene, earlier: WhyReport | None) -> list[Part]:
    return view.resources if earlier is None else earlier.resources


def _not_seen(view: Scene, answers: Answers) -> list[str]:
    """What was not recorded and could matter, in the order of tiers: what is cheapest to record first."""
    case, request = view.case, view.life.request
    gaps = [
        (int(case.capture.requests.client_start[request]) == UNKNOWN, "what the caller measured"),
        (view.life.received == UNKNOWN, "when the front end received it"),
        (not case.capture.lines.rule, "log lines"),
        (view.life.coarse, "its times more finely than in whole seconds"),
        (view.life.mapping == Mapping.UNKNOWN, view.life.dark),
        (not case.capture.pauses.kind, "pauses of the processes, as collections"),
        (not view.counted("run_queue_wait_ns"), "waiting for a processor: no scheduler counters were sampled"),
        (not view.counted("pressure_io_some_us"), "waiting for storage: no pressure counters were sampled"),
        (not view.profiled, "a profile of its steps: operators and kernels"),
        (0 < view.profiled < len(view.life.step), "a profile of all of its steps"),
    ]
    reasons = [f"{UNASKED[name]}: {why}" for name, why in answers.why.items() if name in UNASKED]
    lost = [f"lost in reading: {what}" for what in losses.told(_lost(view))]
    left_out = [case.assessment.left_out] if case.assessment.left_out else []
    return [what for missing, what in gaps if missing] + reasons + left_out + lost
