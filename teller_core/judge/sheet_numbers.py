"""The numbers of sheets: of steps, many at a time; of a request, by what its scene says."""

from collections.abc import Mapping

import numpy as np

from teller_core.data.report import Part
from teller_core.data.sheets import CHARGES, GROUPS, METRICS, NUMBERS, ZONES, numbers_of, place_of
from teller_core.data.table import UNKNOWN, Float32, Float64, Int64
from teller_core.judge.around import SLOW, slowdown, unusual
from teller_core.judge.front import NOWHERE
from teller_core.judge.holds import holds_of_steps
from teller_core.judge.prepare import Case
from teller_core.judge.request_numbers import NAMES as OF_REQUESTS
from teller_core.judge.request_numbers import request_numbers
from teller_core.judge.rules_comm import kept
from teller_core.judge.scene import Scene
from teller_core.judge.step_numbers import NAMES as OF_STEPS
from teller_core.judge.step_numbers import step_numbers, window
from teller_core.judge.step_threads import step_threads

FURTHEST = 20.0
"""Robust standard deviations: what lies further out lies far out."""
HELD = tuple(name for name in GROUPS["holds"] if name != "gaps")
_REQUESTS_OWN = frozenset({"zones", "phases", "resources", "asked", "request", "holds"})
"""Groups of which steps have nothing, or something else, to say."""
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def step_rows(case: Case, at: Int64) -> Matrix:
    """float32 [len(at), NUMBERS]: the steps at ``at`` (positions)."""
    out = np.full((len(at), len(NUMBERS)), np.nan, np.float32)
    place = place_of()
    out[:, [place[name] for name in OF_STEPS]] = step_numbers(case, at)
    columns: dict[str, Float64] = {**_over(case, at), **_work(case, at), **_threads(case, at), **_holds(case, at)}
    columns["profile.profiled"] = case.profiled[at].astype(np.float64)
    for name, column in columns.items():
        out[:, place[name]] = column
    for name, value in _service(case).items():
        out[:, place[name]] = value
    return out


def _over(case: Case, at: Int64) -> dict[str, Float64]:
    steps = case.assessment.steps
    took, expected, excess = case.took[at], case.expected[at], steps.excess[at]
    known = (took > 0) & (expected > 0)
    around = slowdown(case)[at]
    log = np.log(np.where(known, took, 1) / np.where(known, expected, 1))
    return {
        "over.over": np.where(known, log, np.nan),
        "over.residual": np.clip(steps.residual[at], -FURTHEST, FURTHEST),
        "over.excess": np.where(known & (excess != UNKNOWN), np.clip(excess / np.maximum(took, 1), -1.0, 1.0), np.nan),
        "over.around": around,
        "over.unusual": unusual(case)[at],
    }


def _work(case: Case, at: Int64) -> dict[str, Float64]:
    steps = case.capture.steps
    evicted, batch = (column[at].astype(np.float64) for column in (steps.preempted, steps.generation_requests))
    batch = np.where((batch >= 0) & (steps.context_requests[at] >= 0), batch + steps.context_requests[at], -1.0)
    return {
        "work.kv_usage": steps.kv_usage[at],
        "work.preempted": np.where(evicted >= 0, np.log1p(evicted.clip(0)), np.nan),
        "work.batch": np.where(batch >= 0, np.log1p(batch.clip(0)), np.nan),
    }


def _threads(case: Case, at: Int64) -> dict[str, Float64]:
    """Shares of the time from the end of the step before, logged: what the threads did that the step waits for; by rank, the one
    that was kept most from running, and all others on the average.
    """
    low, high, known = window(case, at)
    whole = np.maximum(high - low, 1)
    out: dict[str, Float64] = {}
    doing = step_threads(case).doing(low, high, np.zeros(len(at), np.bool_))
    if doing is not None:
        for name, ns in zip(("waited", "asleep", "crowded"), doing, strict=True):
            out[f"threads.{name}"] = np.where(known, np.log1p(ns / whole), np.nan)
    by_rank = [np.log1p((waited[at] + still[at]) / whole) for waited, still in kept(case).values()]
    if by_rank:
        share = np.sort(np.stack(by_rank), axis=0)
        out["threads.kept_rank"], out["threads.others_kept"] = share[-1], share[:-1].mean(axis=0)
    return out


def _holds(case: Case, at: Int64) -> dict[str, Float64]:
    """What is charged to each step and the gap before it, as shares of its time."""
    sums = held_of_steps(case)
    low, high, known = window(case, at)
    judged = known & (case.expected[at] != UNKNOWN)
    return {
        f"holds.{name}": np.where(judged, np.clip(ns[at] / np.maximum(high - low, 1), 0.0, 1.0), np.nan)
        for name, ns in sums.items()
    }


def held_of_steps(case: Case) -> Mapping[str, Int64]:
    """int64 ns a step, by charge and as ``gaps``: what held it up, or its begin."""
    return case.once("holds of steps", _held)


def _held(case: Case) -> dict[str, Int64]:
    sums = {name: np.zeros(len(case.begin), np.int64) for name in (*HELD, "gaps")}
    for engine in case.engines.values():
        held, owner = holds_of_steps(case, engine)
        for name in HELD:
            np.add.at(sums[name], owner, getattr(held, name))
        np.add.at(sums["gaps"], owner, np.where(held.gap, held.over, 0))
    return sums


def _service(case: Case) -> dict[str, float]:
    return case.once("service numbers", _of_service)


def _of_service(case: Case) -> dict[str, float]:
    took = case.took[case.took > 0]
    batch = case.capture.steps.generation_requests
    found = {"service.front_apart": float(case.apart)}
    if len(took):
        found["service.step_ns"] = float(np.log(np.median(took)))
        found["service.steps"] = float(np.log1p(len(took)))
    if (batch >= 0).any():
        found["service.at_once"] = float(np.log1p(np.median(batch[batch >= 0])))
    return found


def request_row(view: Scene) -> Float32:
    """float32 [NUMBERS]: one request by one metric."""
    case, request = view.case, view.life.request
    table = case.once("request numbers", lambda case: request_numbers(case.capture))
    given: dict[str, float] = {**_service(case), **_asked(view), **_phases(view), **_zones(view), **_held_up(view)}
    given |= {f"request.{name}": float(value) for name, value in zip(OF_REQUESTS, table[request], strict=True)}
    given["request.failed"] = float(case.capture.requests.failed[request])
    out = numbers_of(given)
    if len(view.life.step):
        _of_its_steps(view, out)
    return out


def _of_its_steps(view: Scene, out: Float32) -> None:
    """Fill in what steps have: the mean over its own ones by their time, and what the most suspicious one has."""
    case, own, place = view.case, view.life.step.astype(np.int64), place_of()
    rows, weight = step_rows(case, own), (view.life.stop - view.life.start).clip(1).astype(np.float64)
    known = ~np.isnan(rows)
    summed = np.where(known, rows, 0.0).T @ weight
    share = known.T @ weight
    mean = np.where(share > 0, summed / np.maximum(share, 1.0), np.nan)
    for at, name in enumerate(NUMBERS):
        if name.partition(".")[0] not in _REQUESTS_OWN and np.isnan(out[at]):
            out[at] = mean[at]
    column = {name: rows[:, place[f"over.{name}"]].astype(np.float64) for name in ("over", "residual", "around")}
    for name in ("over", "residual"):
        if not np.isnan(column[name]).all():
            out[place[f"over.worst_{name}"]] = np.nanmax(column[name])
    excess = case.assessment.steps.excess[own]
    if view.span and (excess != UNKNOWN).any():
        out[place["over.worst_excess"]] = np.clip(excess.max() / view.span, -1.0, 1.0)
    told = ~np.isnan(column["around"])
    if told.any():
        out[place["over.slow_share"]] = weight[told & (column["around"] >= np.log(SLOW))].sum() / weight[told].sum()


def _asked(view: Scene) -> dict[str, float]:
    """By metric: the log of the value over what its work, and its load, predict."""
    numbers = view.case.assessment.requests
    found: dict[str, float] = {}
    for metric in METRICS:
        row = view.case.expectation(view.life.request, metric)
        if row is None:
            continue
        value = int(numbers.value[row])
        for name, column in (("over_work", numbers.by_work), ("over_load", numbers.by_load)):
            if value > 0 and int(column[row]) > 0:
                found[f"asked.{metric} {name}"] = float(np.log(value / int(column[row])))
        found[f"asked.{metric} residual"] = float(np.clip(numbers.residual[row], -FURTHEST, FURTHEST))
    return found


def _phases(view: Scene) -> dict[str, float]:
    return {**_shares("phases", view.phases, view.span), **_shares("resources", view.resources, view.span)}


def _shares(group: str, parts: list[Part], span: int) -> dict[str, float]:
    return {f"{group}.{part.part}": part.ns / span for part in parts if part.ns is not None and span}


def _zones(view: Scene) -> dict[str, float]:
    found: dict[str, float] = {}
    for way in ZONES:
        zone = view.front[way]
        if zone is NOWHERE or not view.span:
            continue
        charges: Mapping[str, int | None] = {charge: getattr(zone, charge) for charge in CHARGES}
        found |= {f"zones.{way} {charge}": ns / view.span for charge, ns in charges.items() if ns is not None}
    return found


def _held_up(view: Scene) -> dict[str, float]:
    """What held it up, charged once, as shares of the stretch."""
    held = view.holds
    if not held.judged or not view.span:
        return {}
    sums = {name: int(getattr(held, name).sum()) for name in HELD} | {"gaps": int(held.over[held.gap].sum())}
    return {f"holds.{name}": ns / view.span for name, ns in sums.items()}
