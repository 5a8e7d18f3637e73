"""What each request should have taken: by its own work, and by the load that it really met."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.assessment import RequestExpectations, StepExpectations
from teller_core.data.capture import Capture
from teller_core.data.learned import REQUEST_WORK
from teller_core.data.steps import Requests, Role, TokenTimes
from teller_core.data.table import UNKNOWN, Float64, Int32, Int64, Mask, Text, UInt8
from teller_core.judge.expectations import StepModel
from teller_core.judge.regress import Fit, fit, surprise

METRICS = ("ttft", "tpot", "itl_max", "e2e")
WORK = {"ttft": (REQUEST_WORK[0],), "tpot": (), "itl_max": (), "e2e": REQUEST_WORK}
"""The work that bears on each metric."""


def measured(requests: Requests, tokens: TokenTimes) -> dict[str, Int64]:
    """int64 ns by metric, a request each; UNKNOWN where it was not recorded. Where the caller measured both ends of a
    duration they are taken from the caller, else from the server.
    """
    begin, end = requests.begin(), requests.end()
    first = np.where(_both(requests.client_start, requests.client_first), requests.client_first, requests.first_token)
    output = requests.output_tokens.astype(np.int64)
    spoke = requests.last_token.copy(), requests.first_token.copy()
    for i in np.flatnonzero(np.diff(tokens.offset) > 1).tolist():
        times = tokens.of(i)
        spoke[0][i], spoke[1][i] = times[-1], times[0]
    decoding = _span(spoke[1], spoke[0])
    each = np.where((output > 1) & (decoding != UNKNOWN), decoding // np.maximum(output - 1, 1), UNKNOWN)
    return {"ttft": _span(begin, first), "tpot": each, "itl_max": requests.itl_max, "e2e": _span(begin, end)}


class Usual(NamedTuple):
    """What was learned elsewhere: by metric the costs of a request's work, of the kinds named; and ns a step beyond its steps."""

    costs: Mapping[str, tuple[Sequence[str], Fit]]
    rest: Mapping[str, float]


NOT_LEARNED = Usual({}, {})


def expect_requests(
    capture: Capture, steps: StepExpectations, model: StepModel | None, usual: Usual = NOT_LEARNED
) -> RequestExpectations:
    """Every request and metric. ``by_work`` is learned elsewhere (``usual``), from the other requests of the capture, or from its
    step model where they are too few; ``by_load`` needs to be known which steps served the request.
    """
    values = measured(capture.requests, capture.tokens)
    load = _by_load(capture, steps, values, usual.rest)
    n = len(capture.requests.number)
    metric: Text = [name for name in METRICS for _ in range(n)]
    work = {name: _by_work(capture, name, values[name], model, usual.costs.get(name)) for name in METRICS}
    return RequestExpectations(
        request=np.tile(np.arange(n, dtype=np.int32), len(METRICS)),
        metric=metric,
        value=np.concatenate([values[name] for name in METRICS]),
        by_work=np.concatenate([work[name][0] for name in METRICS]),
        by_load=np.concatenate([load[name] for name in METRICS]),
        residual=np.concatenate([work[name][1] for name in METRICS]),
    )


def _by_work(
    capture: Capture, metric: str, value: Int64, model: StepModel | None, usual: tuple[Sequence[str], Fit] | None
) -> tuple[Int64, Float64]:
    """ns that the request's own tokens predict, and the residual of its value."""
    requests = capture.requests
    used = work_known(requests, metric)
    if usual is not None and set(usual[0]) <= set(used):
        used, costs = usual
    else:
        costs = request_costs(requests, value, used)
    features = _columns(requests, used)
    complete = np.logical_not(np.any(np.isnan(features), axis=1))
    residual = np.full(len(value), np.nan)
    if costs is None:
        return _from_steps(capture, metric, model), residual
    filled = np.where(complete[:, None], features, 1.0)
    expected = costs.predict(filled)
    known = np.flatnonzero(complete & (value != UNKNOWN) & (value > 0))
    residual[known] = surprise(value[known].astype(np.float64), expected[known], costs.width(filled)[known])
    return np.where(complete, np.round(expected), UNKNOWN).astype(np.int64), residual


def request_costs(requests: Requests, value: Int64, used: Sequence[str]) -> Fit | None:
    """What a metric's ``value`` (ns a request) costs by the work ``used``; None for too few that know both."""
    features = _columns(requests, used)
    known = np.logical_not(np.any(np.isnan(features), axis=1))
    peers = np.flatnonzero((value != UNKNOWN) & (value > 0) & known & (requests.failed == 0))
    return fit(features[peers], value[peers].astype(np.float64))


def work_known(requests: Requests, metric: str) -> Sequence[str]:
    """The work that bears on ``metric``; a number that hardly any request knows is left out."""
    many = len(requests.number)
    return [name for name in WORK[metric] if np.count_nonzero(~np.isnan(_work(requests, name))) > many // 2]


def _columns(requests: Requests, used: Sequence[str]) -> Float64:
    """Work as columns, the first of ones."""
    return np.column_stack([np.ones(len(requests.number)), *(_work(requests, name) for name in used)])


def _work(requests: Requests, name: str) -> Float64:
    """float64 a request: tokens of one kind of work, NaN where not known."""
    prompt, output = requests.prompt_tokens.astype(np.float64), requests.output_tokens.astype(np.float64)
    if name == REQUEST_WORK[0]:
        return np.where(prompt >= 0, np.maximum(prompt - np.maximum(requests.cached_tokens, 0), 1), np.nan)
    return np.where(output >= 0, np.maximum(output - 1, 0), np.nan)


def _from_steps(capture: Capture, metric: str, model: StepModel | None) -> Int64:
    """ns from the step model alone: the prefill in one step beside a usual batch, then one usual step a token."""
    requests, steps = capture.requests, capture.steps
    out = np.full(len(requests.number), UNKNOWN, dtype=np.int64)
    batch, kv = steps.generation_requests[steps.generation_requests >= 0], steps.kv_tokens[steps.kv_tokens >= 0]
    if model is None or not len(batch):
        return out
    usual, memory = float(np.median(batch)), float(np.median(kv)) if len(kv) else 0.0
    each = model.expect(0, max(usual, 1.0), memory)
    for i in range(len(out)):
        prompt, output = int(requests.prompt_tokens[i]), int(requests.output_tokens[i])
        first = model.expect(max(prompt - max(int(requests.cached_tokens[i]), 0), 1), usual, memory + max(prompt, 0))
        if metric in ("tpot", "itl_max"):
            out[i] = round(each)
        elif prompt >= 0 and (metric == "ttft" or output >= 0):
            out[i] = round(first + (each * max(output - 1, 0) if metric == "e2e" else 0.0))
    return out


@dataclass(frozen=True)
class _Cadence:
    """The steps of one engine by end. ``at`` int64: where each step of the capture stands in it, -1 for none; ``begin`` int64 ns;
    running sums, one longer: ``taken`` and ``expected`` ns, and ``known`` steps that have both.
    """

    at: Int64
    begin: Int64
    taken: Int64
    expected: Int64
    known: Int64

    def stretch(self, low: int, high: int) -> tuple[int, int] | None:
        """ns taken by the steps ``[low, high)`` and ns expected of them; None for no step or one of which they are not known."""
        if high <= low or int(self.known[high] - self.known[low]) < high - low:
            return None
        return int(self.taken[high] - self.taken[low]), int(self.expected[high] - self.expected[low])


class _Stretch(NamedTuple):
    """A part of a request's life: ns waited before its first step, taken by the steps and expected of them; how many steps; and
    how many values of the metric it holds (tokens for tpot).
    """

    request: int
    wait: int
    taken: int
    expected: int
    steps: int
    parts: int


def _by_load(
    capture: Capture, expectations: StepExpectations, values: dict[str, Int64], known: Mapping[str, float]
) -> dict[str, Int64]:
    """For each metric: the wait it really had before its first step, then every step of its engine until its last one at the
    time expected of it, and between the steps what is usual here, or ``known``.
    """
    n = len(capture.requests.number)
    out = {name: np.full(n, UNKNOWN, dtype=np.int64) for name in METRICS}
    life, longest = _lives(capture, expectations)
    for metric, stretches in life.items():
        usual = known[metric] if metric in known else _rest(stretches, values[metric])
        for s in stretches:
            out[metric][s.request] = round((s.wait + s.expected + usual * s.steps) / s.parts)
        if metric == "tpot":
            out["itl_max"] = np.where(longest != UNKNOWN, longest + round(usual), UNKNOWN)
    return out


def rest_of(capture: Capture, expectations: StepExpectations) -> dict[str, float]:
    """By metric: ns a step that requests usually take beyond what their steps do; a metric that nobody measured is left out."""
    values, (life, _) = measured(capture.requests, capture.tokens), _lives(capture, expectations)
    told = {name: [s for s in each if values[name][s.request] != UNKNOWN] for name, each in life.items()}
    return {metric: _rest(stretches, values[metric]) for metric, stretches in told.items() if stretches}


def _rest(stretches: Sequence[_Stretch], value: Int64) -> float:
    rest = [
        max((int(value[s.request]) * s.parts - s.wait - s.taken) / s.steps, 0.0)
        for s in stretches
        if value[s.request] != UNKNOWN
    ]
    return float(np.median(rest)) if rest else 0.0


def _lives(capture: Capture, expectations: StepExpectations) -> tuple[dict[str, list[_Stretch]], Int64]:
    """The stretches of all requests by metric; and, int64 ns a request, the longest that it is expected to wait for a step."""
    requests, served = capture.requests, capture.participation
    n = len(requests.number)
    order = np.argsort(served.request, kind="stable")
    cut = np.searchsorted(served.request[order], np.arange(n + 1))
    cadences = {int(engine): _cadence(capture, expectations, int(engine)) for engine in np.unique(capture.steps.engine)}
    begin = requests.begin()
    life: dict[str, list[_Stretch]] = {"ttft": [], "tpot": [], "e2e": []}
    longest = np.full(n, UNKNOWN, dtype=np.int64)
    for i in range(n):
        rows = order[cut[i] : cut[i + 1]]
        if not len(rows):
            continue
        cadence = cadences[int(capture.steps.engine[served.step[rows[0]]])]
        own, first = _own_steps(cadence, served.step[rows], served.role[rows])
        for metric, stretch in _stretches(
            cadence, own, first, request=i, begin=int(begin[i]), output=int(requests.output_tokens[i])
        ):
            life[metric].append(stretch)
        if len(own) > max(first, 0) + 1 and cadence.stretch(int(own[max(first, 0)]), int(own[-1]) + 1) is not None:
            longest[i] = int(np.max(np.diff(cadence.expected[own[max(first, 0) :] + 1])))
    return life, longest


def _own_steps(cadence: _Cadence, step: Int32, role: UInt8) -> tuple[Int64, int]:
    """The request's steps as places in ``cadence``, ascending, and which of them gave its first token: the last prefill before
    the first decode, -1 where none is known.
    """
    at = cadence.at[step]
    order = np.argsort(at, kind="stable")
    order = order[at[order] >= 0]
    decodes = np.flatnonzero(role[order] == Role.DECODE)
    return at[order], int(decodes[0]) - 1 if len(decodes) else len(order) - 1


def _stretches(
    cadence: _Cadence, own: Int64, first: int, *, request: int, begin: int, output: int
) -> Iterator[tuple[str, _Stretch]]:
    if not len(own):
        return
    low, high = int(own[0]), int(own[-1]) + 1
    start = int(cadence.begin[low])
    wait = start - begin if UNKNOWN not in (start, begin) else UNKNOWN
    middle = int(own[first]) + 1 if first >= 0 else low
    for metric, a, b, parts in (("ttft", low, middle, 1), ("e2e", low, high, 1), ("tpot", middle, high, output - 1)):
        sums = cadence.stretch(a, b)
        before = 0 if metric == "tpot" else wait
        if sums is not None and parts > 0 and before != UNKNOWN:
            yield metric, _Stretch(request, before, sums[0], sums[1], b - a, parts)


def _cadence(capture: Capture, expectations: StepExpectations, engine: int) -> _Cadence:
    steps = capture.steps
    begin, end = steps.begin(), steps.end()
    mine = np.flatnonzero((steps.engine == engine) & (end != UNKNOWN))
    mine = mine[np.argsort(end[mine], kind="stable")]
    at = np.full(len(end), -1, dtype=np.int64)
    at[mine] = np.arange(len(mine))
    taken, expected = expectations.took[mine], expectations.expected[mine]
    known = (taken != UNKNOWN) & (expected != UNKNOWN)
    # An end that a line bounds to a second does not say when a step of milliseconds began.
    told = known & (steps.elapsed[mine] == UNKNOWN)
    begun = np.where(begin[mine] != UNKNOWN, begin[mine], np.where(told, end[mine] - taken, UNKNOWN))
    sums = [np.append(0, np.cumsum(np.where(known, column, 0))) for column in (taken, expected)]
    return _Cadence(at, begun, sums[0], sums[1], np.append(0, np.cumsum(known)))


def _both(a: Int64, b: Int64) -> Mask:
    return (a != UNKNOWN) & (b != UNKNOWN)


def _span(low: Int64, high: Int64) -> Int64:
    """int64 ns: ``high - low``, UNKNOWN where either is unknown or they run backwards."""
    return np.where(_both(low, high) & (high >= low), high - low, UNKNOWN)
