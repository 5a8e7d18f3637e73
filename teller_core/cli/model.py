"""The verb of the model of root causes: its training, what each part of its input is worth, and its card."""

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from teller_core.calls.arguments import option
from teller_core.calls.model import READ
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
    _show(train(_work(given, given.sheets, plan), given.to, _tell))
    return 0


def _ablate(given: argparse.Namespace) -> int:
    from teller_core.model.ablating import REDUCED, ablate, lines_of
    from teller_core.model.options import PAPER

    plan = replace(REDUCED, threads=given.threads, minutes=given.minutes or REDUCED.minutes)
    if given.vocabularies is not None:
        return _compare_vocabularies(given, plan)
    if given.sheets is None:
        raise InputError("model ablate", "no sheets are named", "Name their folder with --sheets")
    parts = (*(given.without or READ), *(PAPER if given.paper else ()))
    say("\n".join(lines_of(ablate(_work(given, given.sheets, plan), given.to, parts, given.seeds, _tell))))
    return 0


def _compare_vocabularies(given: argparse.Namespace, plan: "Plan") -> int:
    from teller_core.lab.vocabularies import write_codings
    from teller_core.model.ablating import compare, lines_of
    from teller_core.model.judging import needed

    if given.sheets is not None or given.without or given.paper:
        raise InputError("model ablate", "it does one thing at a time", "Name --vocabularies alone")
    needed()
    written = write_codings(given.vocabularies, given.to / "sheets", _tell)
    works = ((each.name, _work(given, each.folder, plan)) for each in written)
    say("\n".join(lines_of(compare(works, given.to, given.seeds, _tell))))
    return 0


def _card(given: argparse.Namespace) -> int:
    from teller_core.model.judging import SHIPPED, card_in

    _show(card_in(given.file or SHIPPED))
    return 0


def _work(given: argparse.Namespace, sheets: Path, plan: "Plan") -> "Work":
    from teller_core.model.judging import needed
    from teller_core.model.lives import lives_in
    from teller_core.model.training import Work

    needed()
    lives, reads = lives_in(sheets, plan.seed, _tell)
    return Work(lives, reads, plan=plan, backbone=given.backbone)


def _show(card: "Card") -> None:
    from teller_core.model.card import text_of

    say(text_of(card).rstrip("\n"))


def _tell(text: str) -> None:
    """It takes a while: what was said stays."""
    complain(f"{time.strftime('%H:%M:%S')} {text}")


VERBS: Mapping[str, Callable[..., int]] = {"model": _model}
