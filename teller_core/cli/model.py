"""The verb of the model of root causes: its training, what each part of its input is worth, and its card."""

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from teller_core.calls import READ, option
from teller_core.cli.speech import complain, say
from teller_core.cli.verbs import Verbs
from teller_core.errors import InputError

if TYPE_CHECKING:
    from teller_core.model.card import Card
    from teller_core.model.options import Plan
    from teller_core.model.training import Work


def _model(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    if option(given, "json"):
        raise InputError("model", "what it says is text", "Leave --json away")
    actions = {"train": _train, "ablate": _ablate, "card": _card}
    return actions[given.action](given)


def _train(given: argparse.Namespace) -> int:
    from teller_core.model.options import Plan
    from teller_core.model.training import train

    asked = {"updates": given.updates, "minutes": given.minutes}
    plan = replace(
        Plan(seed=given.seed, unseen=given.unseen, threads=given.threads),
        **{name: value for name, value in asked.items() if value is not None},
    )
    _show(train(_work(given, plan), given.to, _tell))
    return 0


def _ablate(given: argparse.Namespace) -> int:
    from teller_core.model.ablating import REDUCED, ablate, lines_of
    from teller_core.model.options import PAPER

    plan = replace(REDUCED, threads=given.threads, minutes=given.minutes or REDUCED.minutes)
    parts = (*(given.without or READ), *(PAPER if given.paper else ()))
    say("\n".join(lines_of(ablate(_work(given, plan), given.to, parts, given.seeds, _tell))))
    return 0


def _card(given: argparse.Namespace) -> int:
    from teller_core.model.judging import SHIPPED, card_in

    _show(card_in(given.file or SHIPPED))
    return 0


def _work(given: argparse.Namespace, plan: "Plan") -> "Work":
    from teller_core.model.judging import needed
    from teller_core.model.lives import lives_in
    from teller_core.model.training import Work

    needed()
    lives, reads = lives_in(given.sheets, plan.seed, _tell)
    return Work(lives, reads, plan=plan, backbone=given.backbone)


def _show(card: "Card") -> None:
    from teller_core.model.card import text_of

    say(text_of(card).rstrip("\n"))


def _tell(text: str) -> None:
    """It takes a while: what was said stays."""
    complain(f"{time.strftime('%H:%M:%S')} {text}")


VERBS: Mapping[str, Callable[..., int]] = {"model": _model}
