"""What a step's work predicts it to take, learned from the capture's own steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from teller_core.data.assessment import StepExpectations
from teller_core.data.capture import Capture, Pauses
from teller_core.data.learned import STEP_WORK
from teller_core.data.steps import Steps
from teller_core.data.table import UNKNOWN, Float64, Int64, Mask
from teller_core.judge.regress import LEAST_SPREAD, MIN_PEERS, Fit, fit, surprise
from teller_core.judge.robust import NORMAL_MAD

COVERED = 0.9
"""A number of the work is used where at least this share of the steps knows it; the others then have no expectation."""
SECOND = 1_000_000_000
"""A time that is a multiple of this was stamped by a clock of whole seconds."""
OBSERVER = ("profiler_stop",)
"""Pauses that the recorder itself made: steps that meet them teach nothing."""


@dataclass(frozen=True)
class StepModel:
    """Costs of a step: of itself, a context token, a generation request and a KV token, as far as steps know them.

    ``used`` names the features behind the first cost; ``shift`` and ``spread`` are by phase: how far its steps lie from the
    common prediction in log time, and how widely.
    """

    costs: Fit
    used: Sequence[str]
    shift: dict[str, float]
    spread: dict[str, float]

    def expect(self, context: float, generation: float, kv: float) -> float:
        """ns that a step of this work should take."""
        values = {"context_tokens": context, "generation_requests": generation, "kv_tokens": kv}
        features = np.array([[1.0, *(values[name] for name in self.used)]])
        phase = "decode" if context <= 0 else "mixed" if generation > 0 else "prefill"
        return float(self.costs.predict(features)[0] * np.exp(self.shift.get(phase, 0.0)))


def over(capture: Capture) -> Int64:
    """int64 ns a step: its end, or the end of the last of its requests where that came first: an engine that waits for new
    requests is not at work. UNKNOWN where neither is known. An end of whole seconds, and a step that its line times, are not
    set against one another.
    """
    end, served = capture.steps.end(), capture.participation
    last = np.full(len(end), UNKNOWN, dtype=np.int64)
    done = capture.requests.end()[served.request]
    np.maximum.at(last, served.step, np.where((done != UNKNOWN) & (done % SECOND != 0), done, np.iinfo(np.int64).max))
    cut = (last != UNKNOWN) & (end != UNKNOWN) & (last > capture.steps.begin()) & (capture.steps.elapsed == UNKNOWN)
    return np.where(cut, np.minimum(end, last), end)


def took(steps: Steps, end: Int64) -> Int64:
    """int64 ns: what each step added to its engine's time: until ``end``, from its begin or from the end of the step before it
    where they overlap. Where nobody recorded its begin, what its line says that it took, else from the end of the step before, if
    it continues requests of that step. UNKNOWN where that cannot be said.
    """
    begin = steps.begin()
    out = np.full(len(end), UNKNOWN, dtype=np.int64)
    for engine in np.unique(steps.engine).tolist():
        mine = np.flatnonzero((steps.engine == engine) & (end != UNKNOWN))
        mine = mine[np.argsort(end[mine], kind="stable")]
        before = np.append(np.int64(UNKNOWN), end[mine][:-1])
        continues = steps.generation_requests[mine] > 0
        since = np.where(begin[mine] != UNKNOWN, np.maximum(begin[mine], before), np.where(continues, before, UNKNOWN))
        out[mine] = np.where((since != UNKNOWN) & (end[mine] > since), end[mine] - since, UNKNOWN)
    return np.where((begin == UNKNOWN) & (steps.elapsed != UNKNOWN), steps.elapsed, out)


def watched(steps: Steps, pauses: Pauses) -> Mask:
    """bool a step: whether a pause that the recorder made overlaps it."""
    begin, end = steps.begin(), steps.end()
    begin = np.where(begin != UNKNOWN, begin, end)
    hit = np.zeros(len(end), dtype=np.bool_)
    for i in [i for i, kind in enumerate(pauses.kind) if kind in OBSERVER]:
        hit |= (begin < pauses.start[i] + pauses.dur[i]) & (end > pauses.start[i]) & (end != UNKNOWN)
    return hit


def expect_steps(capture: Capture, known: StepModel | None = None) -> tuple[StepExpectations, StepModel | None]:
    """Every step against what its work predicts, and the model that predicts (None where too few steps are known). ``known``: one
    learned elsewhere, which is used where most steps know the work that it asks for.
    """
    steps = capture.steps
    taken = took(steps, over(capture))
    model = known if known is not None and _covers(known, steps) else None
    if model is None:
        model = step_model(steps, taken, ~watched(steps, capture.pauses))
    unknown = np.full(len(taken), UNKNOWN, dtype=np.int64)
    if model is None:
        return StepExpectations(taken, unknown, np.full(len(taken), np.nan), unknown.copy()), None
    costs, features = model.costs, _columns(steps, model.used)
    complete = ~np.isnan(features).any(axis=1)
    phase = np.array(steps.phases(), dtype=object)
    raw = costs.predict(features)
    expected = raw * np.exp([model.shift.get(p, 0.0) for p in phase.tolist()])
    scale = np.array([model.spread.get(p, costs.spread) for p in phase.tolist()]) / costs.spread
    judged = complete & (taken != UNKNOWN)
    observed = np.where(judged, taken, 1).astype(np.float64)
    residual = np.where(judged, surprise(observed, expected, costs.width(features) * scale), np.nan)
    whole = np.where(complete, np.round(np.nan_to_num(expected)), 0).astype(np.int64)
    return (
        StepExpectations(
            took=taken,
            expected=np.where(complete, whole, UNKNOWN),
            residual=residual,
            excess=np.where(judged, taken - whole, UNKNOWN),
        ),
        model,
    )


def step_model(steps: Steps, taken: Int64, usable: Mask) -> StepModel | None:
    """What ``usable`` steps teach of the time that steps take; None where they are too few."""
    used = _used(steps)
    features = _columns(steps, used)
    learning = np.flatnonzero((taken != UNKNOWN) & ~np.isnan(features).any(axis=1) & usable)
    costs = fit(features[learning], taken[learning].astype(np.float64))
    if costs is None:
        return None
    phase = np.array(steps.phases(), dtype=object)
    raw = costs.predict(features[learning])
    return _by_phase(costs, used, np.log(taken[learning] / raw), phase[learning])


def _covers(model: StepModel, steps: Steps) -> bool:
    """Whether most steps know the work that ``model`` asks for."""
    known = np.logical_not(np.any(np.isnan(_columns(steps, model.used)), axis=1))
    return 0 < COVERED * len(steps.engine) <= np.count_nonzero(known)


def _by_phase(costs: Fit, used: Sequence[str], residual: Float64, phase: npt.NDArray[np.object_]) -> StepModel:
    """Let each phase with enough steps have its own middle and width: prefills vary more than decodes."""
    shift: dict[str, float] = {}
    spread: dict[str, float] = {}
    for name in sorted(set(phase.tolist())):
        mine = residual[phase == name]
        if len(mine) >= MIN_PEERS:
            shift[name] = float(np.median(mine))
            spread[name] = max(float(np.median(np.abs(mine - shift[name]))) * NORMAL_MAD, LEAST_SPREAD)
    return StepModel(costs, used, shift, spread)


def _used(steps: Steps) -> list[str]:
    """The kinds of work that most steps know, and that are not the same for all."""
    used: list[str] = []
    for name in STEP_WORK:
        value = getattr(steps, name)
        known = value >= 0
        if len(value) and known.mean() >= COVERED and len(np.unique(value[known])) > 1:
            used.append(name)
    return used


def _columns(steps: Steps, used: Sequence[str]) -> Float64:
    """The work of every step as columns, the first of ones; NaN where a used number is not known."""
    values = [getattr(steps, name).astype(np.float64) for name in used]
    return np.column_stack([np.ones(len(steps.engine)), *(np.where(value >= 0, value, np.nan) for value in values)])
