"""The tables of README.md and docs/, made from what they describe: run as a script it writes them, and a test compares."""

import argparse
import re
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any

from pydantic.fields import FieldInfo

from teller_core import cli
from teller_core.calls import parser
from teller_core.data import (
    report,
    report_fleet,
    report_lab,
    report_learned,
    report_operators,
    report_recording,
    report_search,
    report_timeline,
    report_tokens,
    report_what_if,
)
from teller_core.data.causes import causes as taxonomy
from teller_core.data.losses import LOSSES
from teller_core.ingest import catalog
from teller_core.judge.rules import RULES
from teller_mcp.tools import CAPTURING, TOOLS

ROOT = Path(__file__).parent.parent
ANSWERS: dict[str, type[report.Model]] = {
    "import": report.ImportReport,
    "captures": report.CapturesReport,
    "formats": report.FormatsReport,
    "search": report_search.SearchReport,
    "slow": report.SlowReport,
    "fleet": report_fleet.FleetReport,
    "why": report.WhyReport,
    "report": report_timeline.WrittenReport,
    "slice": report.SliceReport,
    "slice --raw": report_tokens.TokensReport,
    "explain-op": report_operators.OperatorReport,
    "learn": report_learned.LearnReport,
    "compare": report.CompareReport,
    "what-if": report_what_if.WhatIfReport,
    "demo": report.DemoReport,
    "capture": report_recording.CaptureRunReport,
    "job": report_recording.JobsReport,
    "doctor": report_recording.DoctorReport,
    "lab run": report_lab.LabRunReport,
    "lab build": report_lab.LabBuildReport,
    "lab rerun": report_lab.LabRerunReport,
    "lab lifted": report_lab.LabLiftedReport,
}


def commands() -> str:
    """One row a verb: how it is called and what it does."""
    rows: list[tuple[str, str]] = []
    for name, called, text in _verbs(parser(cli.VERBS)):
        rows.append((f"`teller {name} {' '.join(_usages(called))}`".replace(" `", "`"), text))
    return _table(("command", "does"), rows)


def answers() -> str:
    """One row a field, of the answers and of what they hold."""
    rows: list[tuple[str, ...]] = []
    shown: set[type[report.Model]] = set()
    waiting: list[tuple[str, type[report.Model]]] = [(f"`{verb}`", model) for verb, model in ANSWERS.items()]
    while waiting:
        title, model = waiting.pop(0)
        if model in shown:
            continue
        shown.add(model)
        for at, (name, field) in enumerate(model.model_fields.items()):
            rows.append((title if at == 0 else "", f"`{name}`", _type(field.annotation), _meaning(field)))
            waiting += [(part.__name__, part) for part in _models(field.annotation)]
    return _table(("in", "field", "type", "meaning"), rows)


def formats() -> str:
    """One row a format, in the order in which a file is tried."""
    rows = [
        (
            f"`{known.name}`",
            known.what,
            known.files and f"`{known.files}`",
            "" if known.tier is None else f"T{known.tier}",
            "yes" if known.tried else "no",
        )
        for known in catalog.formats().formats
    ]
    return _table(("format", "what it is", "files", "gives", "real ones read"), rows)


def losses() -> str:
    """One row a problem that is counted."""
    rows = [(f"`{name}`", loss.words, loss.bears) for name, loss in LOSSES.items()]
    return _table(("counted as", "what it is", "bears on"), rows)


def causes() -> str:
    """One row a cause that has a rule, and so can be named."""
    rows = [(f"`{key}`", table[key].title, f"T{table[key].tier}") for table in [taxonomy()] for key in RULES]
    return _table(("cause", "what it is", "from tier"), rows)


def tools() -> str:
    """One row a tool of the server."""
    rows = [
        (f"`{tool.name}`", " ".join((tool.run.__doc__ or "").split()).split(". ")[0].rstrip(".") + ".")
        for tool in (*TOOLS, *CAPTURING)
    ]
    return _table(("tool", "answers"), rows)


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"tools": tools},
    "docs/asking.md": {"commands": commands, "causes": causes},
    "docs/answers.md": {"answers": answers},
    "docs/counted.md": {"losses": losses},
    "docs/formats.md": {"formats": formats},
}


def written(page: str) -> str:
    """The text of ``page`` with every table between its markers made anew."""
    text = (ROOT / page).read_text("utf-8")
    for name, make in TABLES[page].items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        assert found, f"{page} has no markers for the table {name}"
        text = f"{before}{begin}{make()}\n{end}{after}"
    return text


def _verbs(above: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """Each verb, and each action of one that has several."""
    for action in above._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, called in action.choices.items():
                below = [*_verbs(called)]
                yield from [(f"{name} {part}", each, text) for part, each, text in below] or [
                    (name, called, texts[name])
                ]


def _usages(called: argparse.ArgumentParser) -> list[str]:
    """Each argument as it is written, in brackets where it may be left out, and those of which one is needed together."""
    either = [group for group in called._mutually_exclusive_groups if group.required]
    shown: list[str] = []
    for action in called._actions:
        group = next((group for group in either if action in group._group_actions), None)
        if group is None and action.dest not in ("help", "db", "json", "debug"):
            word = _usage(action)
            shown.append(word if action.required and action.nargs != "*" else f"[{word}]")
        elif group is not None and action is group._group_actions[0]:
            shown.append(f"({' or '.join(map(_usage, group._group_actions))})")
    return shown


def _usage(action: argparse.Action) -> str:
    value = action.metavar or action.dest.upper()
    if not action.option_strings:
        return f"{value}{'...' if action.nargs in ('+', '*') else ''}"
    if action.choices:
        value = " or ".join(map(str, action.choices))
    return f"{action.option_strings[0]}{'' if action.nargs == 0 else f' {value}'}"


def _type(annotation: Any) -> str:
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return " / ".join(f"`{part}`" for part in parts)
    if origin in (typing.Union, UnionType):
        return " or ".join("null" if part is NoneType else _type(part) for part in parts)
    if origin is list:
        return f"list of {_type(parts[0])}"
    if origin is dict:
        return f"{_type(parts[1])} by name"
    return annotation.__name__


def _models(annotation: Any) -> Iterator[type[report.Model]]:
    if isinstance(annotation, type) and issubclass(annotation, report.Model):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _models(part)


def _meaning(field: FieldInfo) -> str:
    return field.description or ""


def _table(heads: tuple[str, ...], rows: list[Any]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(re.sub(r"\|", r"\\|", cell) for cell in row) + " |" for row in rows])


if __name__ == "__main__":
    for page in TABLES:
        (ROOT / page).write_text(written(page), "utf-8")
