"""The tables of ``tests/data/incidents/README.md``. ``python -m tests.core.incidents.page`` writes them."""

import re
import tomllib

from tests.core.incidents.cases import FOLDER, cases

PAGE = FOLDER / "README.md"


def left_out() -> dict[str, str]:
    """Reports without a case, and why."""
    return tomllib.loads((FOLDER / "left_out.toml").read_text("utf-8"))


def written() -> str:
    """The page as it should be."""
    told = [
        "| report | case | cause | first of | engine | told | files | looks alike |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in sorted(cases(), key=lambda case: (case.report or "~", case.name)):
        files = ", ".join(case.capture["files"])
        cause = f"not {case.forbids}" if case.forbids else case.cause
        cells = (case.report or "none", f"`{case.name}`", cause, case.place, case.engine, case.told, files, case.alike)
        told.append(f"| {' | '.join(map(str, cells))} |")
    out = ["| report | why |", "|---|---|", *(f"| {report} | {why} |" for report, why in left_out().items())]
    text = PAGE.read_text("utf-8")
    for mark, lines in (("cases", told), ("left out", out)):
        table = "\n".join([f"<!-- {mark} -->", *lines, f"<!-- /{mark} -->"])
        text = re.sub(rf"<!-- {mark} -->.*?<!-- /{mark} -->", lambda _, table=table: table, text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
