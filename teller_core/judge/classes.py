"""Steps of like work: what a baseline is learned from."""

from dataclasses import dataclass

import numpy as np

from teller_core.data.steps import Steps, StepWork
from teller_core.data.table import Float64, Int32, Text

MIN_STEPS = 8
"""Fewer steps than this are no class of their own: a robust spread of fewer values is wrong by more than a third."""
SPREAD_OF_TOKENS = 0.4
"""Log tokens within a class that differ by less than this (a factor of 1.5) teach no slope."""
SLACK = 0.25
"""Log: two classes agree where they differ by a quarter more than their work."""
HALF = 4
LARGEST = 2**30
"""Tokens of the largest padded step: no engine computes more, and a damaged file may claim any number."""
"""Steps needed on each side of a class's middle to learn how durations grow with tokens."""


@dataclass(frozen=True)
class Covariate:
    """A number of every step that durations grow with: ``x`` float64 a step (log, NaN not known), ``pivot`` float64 a class
    (NaN where no step of it knows), ``half`` int32 a step: 0 below and 1 above the class's middle, -1 where the class cannot
    teach a slope; ``run`` float64 a class: how far apart the halves' middles are.
    """

    x: Float64
    pivot: Float64
    half: Int32
    run: Float64


@dataclass(frozen=True)
class Classes:
    """``of`` int32: the class of every step. ``text``: how a class is called: phase and padded tokens where it has enough
    steps, the phase alone where not, empty for all steps together. Class 0 is for spans outside steps and for steps of
    unknown work. ``steps`` int32 a class: profiled steps.
    """

    of: Int32
    text: Text
    steps: Int32
    tokens: Covariate
    kv: Covariate


def padded(steps: Steps) -> Int32:
    """int32 a step: its tokens padded to a power of two, as graphs pad them; -1 where not known."""
    tokens = _tokens(steps)
    power = np.ceil(np.log2(np.clip(tokens, 1, LARGEST)))
    return np.where(tokens > 0, 2.0**power, -1).astype(np.int32)


def classify(steps: Steps, work: StepWork) -> Classes:
    """The classes of ``steps``, judged by those that a profile overlaps."""
    profiled = np.unique(work.step[work.row >= 0])
    phase, size = steps.phases(), padded(steps)
    fine = [f"{p} {n}" if p and n > 0 else p for p, n in zip(phase, size.tolist(), strict=True)]
    names = list(phase)
    _keep_common(names, fine, profiled)
    _keep_common(names, phase, profiled, taken=fine)
    text = ["", *sorted({name for name in names if name})]
    number = {name: i for i, name in enumerate(text)}
    of = np.array([number[name] for name in names], dtype=np.int32)
    count = np.bincount(of[profiled], minlength=len(text)).astype(np.int32)
    with np.errstate(divide="ignore", invalid="ignore"):
        tokens = np.where(_tokens(steps) > 0, np.log(_tokens(steps)), np.nan)
        kv = np.where(steps.kv_tokens > 0, np.log(steps.kv_tokens.astype(np.float64)), np.nan)
    return Classes(
        of, text, count, _covariate(tokens, of, profiled, len(text)), _covariate(kv, of, profiled, len(text))
    )


def _keep_common(names: Text, label: Text, profiled: Int32, taken: Text | None = None) -> None:
    """Give every step its ``label`` where enough profiled steps have it; with ``taken`` only steps that it left alone."""
    mine = [i for i in range(len(names)) if taken is None or names[i] != taken[i] or taken[i] == label[i]]
    among = set(profiled.tolist())
    count: dict[str, int] = {}
    for i in mine:
        if i in among:
            count[label[i]] = count.get(label[i], 0) + 1
    for i in mine:
        enough = count.get(label[i], 0) >= MIN_STEPS
        names[i] = label[i] if enough else "" if taken is not None else names[i]


def _covariate(x: Float64, of: Int32, profiled: Int32, classes: int) -> Covariate:
    pivot, run = np.full(classes, np.nan), np.zeros(classes)
    half = np.full(len(x), -1, dtype=np.int32)
    for c in range(classes):
        mine = profiled[(of[profiled] == c) & ~np.isnan(x[profiled])]
        if not len(mine):
            continue
        pivot[c] = np.median(x[mine])
        upper = mine[x[mine] > pivot[c]]
        lower = mine[x[mine] <= pivot[c]]
        if len(upper) >= HALF and len(lower) >= HALF:
            run[c] = np.median(x[upper]) - np.median(x[lower])
            if run[c] >= SPREAD_OF_TOKENS:
                half[lower], half[upper] = 0, 1
    return Covariate(x, pivot, half, run)


def _tokens(steps: Steps) -> Float64:
    """float64: tokens computed in each step, NaN where not known."""
    context, generation = steps.context_tokens, steps.generation_tokens
    generation = np.where(generation >= 0, generation, steps.generation_requests)
    known = (context >= 0) & (generation >= 0)
    return np.where(known, context.astype(np.float64) + generation, np.nan)


def capped(level: Float64, classes: Classes, x: Float64) -> Float64:
    """Log durations (or counts) of one thing in every class, rows of ``level``, none above what the classes of the same phase
    allow: work that grows by a factor takes at most that factor longer, plus SLACK, and less work takes no longer. NaN where a
    class says nothing. A fault that strikes most steps of one class is seen so by the others.

    ``x`` float64 a class: log of its work, NaN where not known (nothing is capped then).
    """
    out = level.copy()
    for c, text in enumerate(classes.text):
        for other, name in enumerate(classes.text):
            if other == c or not text or text.partition(" ")[0] != name.partition(" ")[0] or np.isnan(x[c] - x[other]):
                continue
            out[:, c] = np.fmin(out[:, c], level[:, other] + max(0.0, float(x[c] - x[other])) + SLACK)
    return np.where(np.isnan(level), np.nan, out)
