"""One method from its training to its figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from teller_core.errors import InputError
from teller_core.lab.evaluation.episode import TEST, TRAIN, Episode
from teller_core.lab.evaluation.figure import Figure
from teller_core.lab.evaluation.method import Judged, Method, Options
from teller_core.lab.evaluation.metrics import alarms, answers, figures, of_all_faulty, of_requests
from teller_core.lab.evaluation.rows import Rows, rows_of
from teller_core.lab.evaluation.step_figures import of_steps
from teller_core.lab.evaluation.tuning import spread, tuned
from teller_core.lab.side_by_side import side_by_side

Progress = Callable[[str], None]
HANDS = 3
"""For each process, of captures that are judged: some take longer than others."""
MOST_LEFT = 48
"""Episodes that are trained on where something is left out: there are dozens of trainings a method."""
SEEDS_OF = ("request.top_1", "request.macro_f1", "step.pr_auc_at_10")
"""Figures whose value is told for every seed."""


class Sides(NamedTuple):
    """``train`` and ``test``: no life in both; ``all_faulty``, ``healthy``, ``whole``: the test side in other compositions."""

    train: Sequence[Episode]
    test: Sequence[Episode]
    all_faulty: Sequence[Episode] = ()
    healthy: Sequence[Episode] = ()
    whole: Sequence[Episode] = ()


class Evaluation(NamedTuple):
    """What a method came to. ``rows`` of the usual composition; ``log``: how its options were chosen; ``seeds``: by figure, its
    value with each seed.
    """

    method: Method
    figures: Sequence[Figure]
    rows: Rows
    options: Options
    log: Sequence[str]
    seeds: Mapping[str, Sequence[float]]


class LeftOut(NamedTuple):
    """What a method came to on the ``episodes`` of the test side that have a ``value`` it was never trained on."""

    value: str
    episodes: int
    figures: Sequence[Figure]


def evaluated(method: Method, sides: Sides, progress: Progress, at_once: int = 1) -> Evaluation:
    """Choose options, train and judge, ``at_once`` captures at a time.

    Raises InputError where a life stands on both sides, or a side is empty.
    """
    if shared := {e.life for e in sides.train} & {e.life for e in sides.test}:
        raise InputError("The lives", f"{len(shared)} stand on both sides", "Give each one side")
    if not sides.test or (method.learns and not sides.train):
        raise InputError("The lives", "a side has none", "Name a folder with lives of both sides")
    choice = tuned(method, sides.train, progress, at_once)
    progress(f"{method.name}: test side")
    fitted = method.train(sides.train, choice.options, 0)
    rows = judged(method, fitted, sides.test, at_once)
    found = [*figures(rows, chances=method.chances), *_composed(method, fitted, sides, at_once)]
    seeds = {key: [_value(found, key)] for key in SEEDS_OF}
    for seed in range(1, method.seeds):
        again = method.train(sides.train, choice.options, seed)
        other = figures(judged(method, again, sides.test, at_once))
        for key, values in seeds.items():
            values.append(_value(other, key))
    return Evaluation(method, found, rows, choice.options, choice.log, seeds if method.seeds > 1 else {})


def judged(method: Method, fitted: object, episodes: Sequence[Episode], at_once: int = 1) -> Rows:
    """What ``method`` says of ``episodes``, beside their truth. Episodes are dealt like cards: neighbors are of one life."""

    def said(hand: int) -> list[Judged]:
        return [method.judge(fitted, episode.seen) for episode in episodes[hand::hands]]

    hands = max(1, min(len(episodes), HANDS * at_once))
    dealt = side_by_side([partial(said, hand) for hand in range(hands)], at_once)
    return rows_of(episodes, [dealt[at % hands][at // hands] for at in range(len(episodes))])


def left_out(
    method: Method,
    episodes: Sequence[Episode],
    kind: Callable[[Episode], str],
    progress: Progress,
    at_once: int = 1,
) -> list[LeftOut]:
    """For each value of ``kind``: trained on the training side without it, judged on the test side's episodes of it. ``episodes``
    say in ``about["side"]`` where their life stands. Options are those of the method's first entry: nothing is tuned. At most
    MOST_LEFT episodes are trained on, as many of each life as can be.
    """
    first = replace(method, grid=method.grid[:1], seeds=1)

    def without(value: str) -> LeftOut | None:
        train = spread([e for e in episodes if e.about.get("side") == TRAIN and kind(e) != value], MOST_LEFT)
        test = [e for e in episodes if e.about.get("side") == TEST and kind(e) == value]
        if not test or (method.learns and not train):
            return None
        progress(f"{method.name}: without {value}")
        return LeftOut(value, len(test), evaluated(first, Sides(train, test), _nobody).figures)

    values = sorted({kind(episode) for episode in episodes} - {""})
    found = side_by_side([partial(without, value) for value in values], at_once)
    return [one for one in found if one is not None]


def _nobody(text: str) -> None:
    """The value says enough."""


def _composed(method: Method, fitted: object, sides: Sides, at_once: int) -> Iterator[Figure]:
    if sides.all_faulty:
        yield from of_all_faulty(answers(judged(method, fitted, sides.all_faulty, at_once).requests))
    if sides.healthy:
        yield from alarms(judged(method, fitted, sides.healthy, at_once), "healthy_alone")
    if sides.whole:
        whole = judged(method, fitted, sides.whole, at_once)
        yield from of_steps(whole.steps, "step_whole_life")
        yield from of_requests(answers(whole.requests), "request_whole_life")


def _value(found: Sequence[Figure], key: str) -> float:
    return next((figure.value for figure in found if figure.key == key), float("nan"))
