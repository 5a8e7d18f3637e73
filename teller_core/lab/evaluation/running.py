"""One method from its training to its figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from teller_core.errors import InputError
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import Judged, Method, Options
from teller_core.lab.evaluation.metrics import Figure, alarms, figures, of_all_faulty, of_requests, of_steps
from teller_core.lab.evaluation.rows import Rows, rows_of
from teller_core.lab.evaluation.tuning import tuned

Progress = Callable[[str], None]
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


def evaluated(method: Method, sides: Sides, progress: Progress) -> Evaluation:
    """Choose options, train and judge. Raises InputError where a life stands on both sides, or a side is empty."""
    if shared := {e.life for e in sides.train} & {e.life for e in sides.test}:
        raise InputError("The lives", f"{len(shared)} stand on both sides", "Give each one side")
    if not sides.test or not sides.train:
        raise InputError("The lives", "a side has none", "Name a folder with lives of both sides")
    choice = tuned(method, sides.train, progress)
    progress(f"{method.name}: test side")
    fitted = method.train(sides.train, choice.options, 0)
    rows = rows_of(sides.test, [method.judge(fitted, each.seen) for each in sides.test])
    found = [*figures(rows), *_composed(method, fitted, sides)]
    seeds = {key: [_value(found, key)] for key in SEEDS_OF}
    for seed in range(1, method.seeds):
        again = method.train(sides.train, choice.options, seed)
        other = figures(rows_of(sides.test, [method.judge(again, each.seen) for each in sides.test]))
        for key, values in seeds.items():
            values.append(_value(other, key))
    return Evaluation(method, found, rows, choice.options, choice.log, seeds if method.seeds > 1 else {})


def left_out(
    method: Method, episodes: Sequence[Episode], kind: Callable[[Episode], str], progress: Progress
) -> Mapping[str, Evaluation]:
    """By each value of ``kind``: trained on the training side without it, judged on the test side's episodes of it. ``episodes``
    say in ``about["side"]`` where their life stands. Options are those of the method's first entry: nothing is tuned twice.
    """
    found: dict[str, Evaluation] = {}
    first = replace(method, grid=method.grid[:1], seeds=1)
    for value in sorted({kind(episode) for episode in episodes}):
        train = [e for e in episodes if e.about.get("side") == "train" and kind(e) != value]
        test = [e for e in episodes if e.about.get("side") == "test" and kind(e) == value]
        if train and test:
            found[value] = evaluated(first, Sides(train, test), progress)
    return found


def _composed(method: Method, fitted: object, sides: Sides) -> Iterator[Figure]:
    def rows(episodes: Sequence[Episode]) -> Rows:
        said: list[Judged] = [method.judge(fitted, each.seen) for each in episodes]
        return rows_of(episodes, said)

    if sides.all_faulty:
        yield from of_all_faulty(rows(sides.all_faulty).requests)
    if sides.healthy:
        yield from alarms(rows(sides.healthy), "healthy_alone")
    if sides.whole:
        whole = rows(sides.whole)
        yield from of_steps(whole.steps, "step_whole_life")
        yield from of_requests(whole.requests, "request_whole_life")


def _value(found: Sequence[Figure], key: str) -> float:
    return next((figure.value for figure in found if figure.key == key), float("nan"))
