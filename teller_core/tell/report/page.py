"""The whole page: one file that loads nothing, with all text of traces as text."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from teller_core.data.report import SliceReport, WhyReport
from teller_core.data.report_timeline import TimelineReport
from teller_core.tell.report.colors import color_rules
from teller_core.tell.report.html import listed, said, section, tag
from teller_core.tell.report.parts import breakdowns, findings
from teller_core.tell.report.picture import picture
from teller_core.tell.report.top import top
from teller_core.tell.report.tree import tree


def report_page(answer: WhyReport, drawn: TimelineReport, cut: SliceReport | None, why_no_slice: str = "") -> str:
    """The answer as HTML. ``drawn``: its timeline; ``cut``: the slice of the step it blames, None where there is none, for the
    reason in ``why_no_slice``. No script, no font, no picture and no style comes from outside, and the page forbids them.
    """
    body = "".join(
        [
            "<main>",
            top(answer),
            section("In words", tag("p", said(answer.explanation)) if answer.explanation else ""),
            picture(drawn),
            breakdowns(answer),
            findings(answer),
            tree(cut, why_no_slice),
            section("What was not seen", listed(answer.not_seen)),
            section("Check next", listed(answer.next_checks)),
            _foot(answer),
            "</main>",
        ]
    )
    return f"{_head(f'Why request {answer.request} was slow')}<body>\n{body}</body>\n</html>\n"


@cache
def _style() -> str:
    return f"\n{color_rules()}\n{files('teller_core.tell.report').joinpath('style.css').read_text('utf-8')}"


def _head(title: str) -> str:
    """All that comes before the body. The policy allows this style, by its hash, and nothing else."""
    style = _style()
    allowed = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{said(title)}</title>\n<style>{style}</style>\n</head>\n"
    )


def _foot(answer: WhyReport) -> str:
    judged = f"judged by {answer.judged_by}{f' ({answer.model})' if answer.model else ''}"
    mapping = f"which requests each step served is {answer.coverage.mapping}"
    where = f"from capture {answer.capture[:12]}, at tier T{answer.tier}, {judged}; {mapping}"
    return tag("footer", said(f"By TELLER, {where}. This page loads nothing."))
