"""What ``doctor`` found, or how an engine is started, as a page."""

import shlex
import textwrap

from teller_core.data.report_recording import DoctorCheck, DoctorReport, RecipeReport
from teller_core.tell.layout import Style, plain

TITLES = {"here": "What can be recorded of programs that run in", "recording": "What became of the recording"}
MARKS = {"yes": ("yes", "32"), "partly": ("partly", "33"), "no": ("no", "31"), "note": ("-", "2")}
RECORD = "To record: teller capture -- COMMAND, or, where nothing may stand around it, teller doctor --print ENGINE"
DOORS = {
    "plugin": "by a stat logger of ours, which vLLM loads itself",
    "flags": "by its own switches alone",
    "capture": "by our recorder: it has no door of its own",
}


def doctor_page(report: DoctorReport, style: Style) -> list[str]:
    """The lines of the page."""
    if report.recipe is not None:
        return _recipe(report.recipe, style)
    lines = [style.head(f"{TITLES[report.subject]} {plain(report.name, 200)}"), ""]
    width = max((len(check.part) for check in report.checks), default=0)
    for check in report.checks:
        lines += _check(check, width, style)
    missing = sum(check.state == "no" for check in report.checks)
    partly = sum(check.state == "partly" for check in report.checks)
    counts = [f"{count} {word}" for count, word in ((missing, "missing"), (partly, "there in part")) if count]
    lines += ["", f"Of {len(report.checks)} things: {', '.join(counts)}." if counts else "All is well."]
    return lines + (_wrapped(RECORD, style, "", "") if report.subject == "here" else [])


def _check(check: DoctorCheck, width: int, style: Style) -> list[str]:
    word, color = MARKS[check.state]
    indent = " " * (width + 12)
    text = _wrapped(check.found, style, f"  {check.part.ljust(width)}  {word:<8}", indent)
    text[0] = text[0].replace(f"  {word:<8}", f"  {style.paint(f'{word:<8}', color)}", 1) if style.color else text[0]
    if check.next:
        text += _wrapped(f"> {check.next}", style, indent, indent + "  ")
    return text


def _recipe(recipe: RecipeReport, style: Style) -> list[str]:
    lines = [style.head(f"{recipe.engine} for tier T{recipe.tier}, {DOORS[recipe.door]}")]
    known = (
        f"Its switches were run with {recipe.engine} {recipe.tested}." if recipe.tested else "None of it was run by us."
    )
    lines += map(style.dim, _wrapped(known, style, "", ""))
    set_up = recipe.helm.rstrip("\n").split("\n") if recipe.helm is not None else _shell(recipe)
    lines += ["", *set_up] if set_up else []
    lines += ["", style.head("Then"), *(f"  {line}" for line in recipe.then)]
    for file in recipe.files:
        lines += ["", style.head(f"{file.name}: {file.about}"), *(f"  {line}" for line in file.content.splitlines())]
    for title, texts in (("It records", recipe.gives), ("Note", recipe.notes)):
        lines += ["", style.head(title)]
        for text in texts:
            lines += _wrapped(text, style, "  - ", "    ")
    return lines


def _shell(recipe: RecipeReport) -> list[str]:
    """The lines for a shell, whole whatever the width: they are copied."""
    lines = [f"export {name}={_quoted(name, value)}" for name, value in recipe.environment.items()]
    if recipe.door != "capture" and recipe.arguments:
        lines += [f"# and add to the arguments of {recipe.engine}:", shlex.join(recipe.arguments)]
    return lines


def _quoted(name: str, value: str) -> str:
    """What stands on PYTHONPATH already stays on it."""
    return f"{shlex.quote(value)}${{PYTHONPATH:+:$PYTHONPATH}}" if name == "PYTHONPATH" else shlex.quote(value)


def _wrapped(text: str, style: Style, first: str, rest: str) -> list[str]:
    """``text`` in lines of the style's width; switches and paths stay whole."""
    return textwrap.wrap(
        plain(text, 1000),
        style.width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
