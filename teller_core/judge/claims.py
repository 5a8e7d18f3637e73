"""Which clues are named as causes of a request: by what they cost it, and by what the requests beside it lost to the same."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from teller_core.data.capture import processes
from teller_core.data.causes import cause
from teller_core.data.report import Metric
from teller_core.judge.beside import BESIDE, arrivals
from teller_core.judge.evidence import Clue
from teller_core.judge.prepare import Case
from teller_core.judge.questions import Answers
from teller_core.judge.rules import AS_MUCH, OF_STEPS, RULES, SAYS_WHY
from teller_core.judge.scene import Scene, scene

LEAST_NS = 30_000_000
"""What a cause costs must be noticeable: people do not notice less than tens of milliseconds."""
LEAST_SHARE = 0.1
"""And it must be this share of what the metric measures: everything else delays every request a little."""
FEW_NS = 5_000_000
"""Less than this is nothing that anybody would look for."""
OWN_SHARE = 0.02
"""What the engine recorded of this very request needs less: it is no noise."""
LASTING_SHARE = 0.05
"""So does what most of the requests beside it lost time to as well: chance does not strike several in a row. A twentieth is
what a fault must cost to be one.
"""
DIFFUSE_SHARE = 0.2
"""What is spread over many steps and told from counters needs more: noise of a busy host, or prompts that are somewhat longer
than most, add up too.
"""
DIFFUSE = frozenset(
    {
        "host.cpu_starvation",
        "host.interpreter_lock",
        "host.memory_bandwidth",
        "host.step_overhead",
        "scheduler.prefill_interference",
    }
)
EVERYDAY = DIFFUSE | {
    "frontend.input_processing",
    "frontend.detok_stream",
    "frontend.gateway_overhead",
    "scheduler.queue_saturation",
    "host.blocking_call",
    "host.observer_overhead",
    "comm.straggler_rank",
    "comm.degraded_link",
    "comm.moe_imbalance",
}
"""Where several requests come at once all of them lose some time to these, and all is well."""
STEADY = frozenset(
    {
        "host.blocking_call",
        "host.interpreter_lock",
        "host.observer_overhead",
        "host.step_overhead",
        "comm.straggler_rank",
        "comm.degraded_link",
        "comm.moe_imbalance",
    }
)
"""Everyday causes, too, and yet no bursts of a busy host bring them about: what several requests in a row lose to them, and calm
ones do not, is told.
"""
BROAD = DIFFUSE | {"comm.degraded_link"}
"""A busy host slows messages as well, for a while: in a row, too, these need a tenth."""
STANDS_OUT = 1.5
"""Times the most that any of some calm requests loses to it; of a larger loss, times what MOST_CALM of them lose at most."""
MOST_CALM = 0.75
SHARED = (DIFFUSE | STEADY) - {"scheduler.prefill_interference", "host.observer_overhead"}
"""What a host takes from all requests of a capture alike on which several ranks compute: they wait for its processors, and for
one another, all the time, and what calm requests lose to it as well is not why one of them is slow. Of one rank alone that is
no everyday loss: where all requests lose to it, all are in trouble. Front ends are held against most requests where they
are measured.
"""
CALM_ONES = 16
"""Calm requests that are looked at: what one answer costs does not grow with the requests of a capture."""
OWN = frozenset({"scheduler.kv_preemption"})
DIRECT = frozenset(
    {
        "host.gc_pause",
        "host.io_stall",
        "host.observer_overhead",
        "scheduler.prefill_interference",
        "scheduler.kv_preemption",
    }
)
"""Recorded delays of this very request: they are told unless it was faster than predicted."""
NOTICEABLE = 1.1
"""Other causes are told of a request that took this many times what its work or its load predicts."""
LARGE_SHARE = 0.3
"""A cause that took this much is told even of a request that is not slower than predicted: the prediction may know of it."""
ALWAYS_THERE = frozenset(
    {"host.step_overhead", "cuda.graph_miss", "comm.fabric_fallback", "gpu.wrong_kernel", "scheduler.prefix_cache_miss"}
)
"""Causes that may hold for every request of a service: they are claimed only for a request that is slow by a question."""


def heard(view: Scene) -> list[Clue]:
    """What all rules say of a request, however little it cost."""
    rules = [rule for key, rule in RULES.items() if applies(view, key)]
    return [clue for rule in rules if (clue := rule(view)) is not None]


def applies(view: Scene, key: str) -> bool:
    """Whether the rule of a cause has anything to look at: some need steps that served the request, or ran beside it."""
    return key not in OF_STEPS or bool(len(view.life.step) or len(view.holds.step))


def dearest(found: Iterable[Clue]) -> list[Clue]:
    """The one of each cause that cost most, the dearest cause first."""
    best: dict[str, Clue] = {}
    for clue in sorted(found, key=lambda clue: -clue.ns):
        best.setdefault(clue.cause, clue)
    return [*best.values()]


def claimed(view: Scene, answers: Answers, found: Sequence[Clue]) -> list[Clue]:
    """Of the clues that were ``found`` those that may be named and cost this request enough, the dearest first."""
    named = dearest(clue for clue in found if _counts(view, answers, clue))
    why = [clue for clue in named if not any(_says_why(other, clue) for other in named)]
    return [clue for clue in why if not _shared(view, answers, clue)]


def _says_why(better: Clue, clue: Clue) -> bool:
    """Whether ``better`` is what brought ``clue``'s cause about."""
    return clue.cause in SAYS_WHY.get(better.cause, ()) and better.ns >= AS_MUCH * clue.ns


def _counts(view: Scene, answers: Answers, clue: Clue) -> bool:
    """Whether a clue may be named at what was recorded, and cost enough to be why the request is slow."""
    if cause(clue.cause).tier > view.case.capture.tier or clue.ns <= _usual(view, clue.cause):
        return False
    own = clue.decided or clue.cause in OWN
    if own:
        return clue.ns >= max(FEW_NS, OWN_SHARE * view.span)
    diffuse = clue.cause in DIFFUSE and not clue.profiled
    if clue.ns < max(LEAST_NS, (DIFFUSE_SHARE if diffuse else LEAST_SHARE) * view.span):
        return _lasts(view, answers, clue)
    if answers.slow:
        return True
    if clue.cause in ALWAYS_THERE and not clue.singled:
        return False
    return answers.worst >= (1.0 if clue.cause in DIRECT else NOTICEABLE) or clue.ns >= LARGE_SHARE * view.span


def _usual(view: Scene, key: str) -> float:
    """ns that a cause was learned to cost a request of which all is well; -1 where nobody learned it."""
    learned = view.case.assessment.learned
    rate, share = (0.0, 0.0) if learned is None else learned.claims.of(key, view.metric)
    return share * view.span if rate else -1.0


def _lasts(view: Scene, answers: Answers, clue: Clue) -> bool:
    """Whether the requests beside it lost about as much to the same; and, where all lose some to it, more than calm ones do."""
    least = LEAST_SHARE if clue.cause in BROAD and not clue.profiled else LASTING_SHARE
    if clue.ns < max(FEW_NS, least * view.span):
        return False
    if clue.cause in EVERYDAY | ALWAYS_THERE:
        if clue.cause not in STEADY or answers.worst < 1.0:
            return False
        usual = _calm(view)
        least = max(least, STANDS_OUT * max(usual[clue.cause])) if usual is not None else float("inf")
        if clue.ns < least * view.span:
            return False
    before, after = view.case.once("by arrival", arrivals).beside(view.life.request)
    near = [*before, *after]
    struck = [2 * _lost(view.case, request, view.metric).get(clue.cause, 0.0) >= least for request in near]
    return len(near) >= BESIDE and 2 * sum(struck) >= len(near)


def _lost(case: Case, request: int, metric: Metric) -> dict[str, float]:
    """The share of its time that a request lost to each cause, of what is worth looking for."""
    known = case.once(f"lost, {metric}", lambda case: dict[int, dict[str, float]]())
    if request not in known:
        view = scene(case, request, metric)
        told = dearest(clue for clue in heard(view) if 2 * clue.ns >= FEW_NS) if view.span else []
        known[request] = {clue.cause: clue.ns / view.span for clue in told}
    return known[request]


def _shared(view: Scene, answers: Answers, clue: Clue) -> bool:
    """Whether calm requests of this capture lose about as much to it, and nothing from outside says that these are slow as well:
    neither a limit that was broken nor what was learned elsewhere.
    """
    broken = answers.over_slo is not None and answers.over_slo > 1
    if clue.cause not in SHARED or broken or view.case.assessment.learned is not None:
        return False
    if not view.case.once("crowded", _crowded):
        return False
    usual = _calm(view)
    return usual is not None and clue.ns < STANDS_OUT * float(np.quantile(usual[clue.cause], MOST_CALM)) * view.span


def _crowded(case: Case) -> bool:
    """Whether several ranks compute on one host."""
    ranks = case.capture.ranks
    first = set(processes(ranks).tolist())
    return (
        max(Counter(rank.host for at, rank in enumerate(ranks) if at in first and rank.rank >= 0).values(), default=0)
        > 1
    )


def _calm(view: Scene) -> Mapping[str, Sequence[float]] | None:
    """The shares that some calm requests lost to each cause; None where it is not known which are calm."""
    return view.case.once(f"calm, {view.metric}", lambda case: _losses(case, view.metric))


def _losses(case: Case, metric: Metric) -> Mapping[str, Sequence[float]] | None:
    calm = _calm_ones(case, "e2e" if metric == "slo" else metric)
    each = [_lost(case, request, metric) for request in calm]
    return {key: [lost.get(key, 0.0) for lost in each] for key in RULES} if calm else None


def _calm_ones(case: Case, metric: Metric) -> list[int]:
    """CALM_ONES requests, evenly drawn from the half that took least for their work and their load."""
    rows = case.expected_rows.get(metric)
    if rows is None:
        return []
    table, asked = case.assessment.requests, np.flatnonzero(rows >= 0)
    value, work, load = (column[rows[asked]] for column in (table.value, table.by_work, table.by_load))
    least = np.where(work > 0, np.where(load > 0, np.minimum(work, load), work), load)
    known = (value > 0) & (least > 0)
    order = asked[known][np.argsort(value[known] / least[known], kind="stable")]
    calm = order[: len(order) // 2]
    return calm[:: -(-len(calm) // CALM_ONES)].tolist() if len(calm) > BESIDE else []
