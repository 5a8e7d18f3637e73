"""The page of HTML: whole, quiet, and with nothing of a trace in it but text."""

import itertools
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, get_args

import pytest
from hypothesis import given

from teller_core.data.parts import PHASES, RESOURCES
from teller_core.data.report import Part, WhyReport
from teller_core.data.report_timeline import Kind, TimelineReport
from teller_core.tell.report.colors import COLORS, OF_KIND, OF_PART, WORDS
from teller_core.tell.report.page import report_page
from teller_core.tell.report.top import headline
from tests.core.model.words.making import reports
from tests.core.tell.report.parsed import ACTIVE, Parsed

LOADING = {"src", "href", "srcset", "data", "action", "formaction", "poster", "background", "xlink:href", "style"}
BREAKING = "\"><script>alert(1)</script><img src=x onerror=alert(1)></style></title>'--> &lt; \x1b[31m\u202e\u200b\x00"


def of(samples: Any, **changes: Any) -> str:
    return report_page(samples.verdict(**changes), samples.timeline(), samples.slice())


def test_the_first_screen_says_what_happened_how_sure_that_is_what_it_cost_and_what_to_do(samples: Any) -> None:
    fault = samples.finding().model_copy(update={"cause": "host.gc_pause", "cost_ms": 800.5})
    first = Parsed(of(samples, findings=[fault])).text("header")
    for words in (
        "Request 42 (cmpl-0000)",
        "Python's garbage collector stopped the process.",
        "Sure: it was recorded or counted (confidence 0.87).",
        "a profile saw 12 of the 30 steps",
        "it took from end to end 4,812 ms",
        "is usual for as much work about 1,415 ms",
        "went to this cause 800.5 ms",
        "sooner without it, by replay 790.9 ms",
        "Where the time went",
        "decoding 3,500 ms (73%)",
        "What helps: Give the service cores of its own.",
        "Check next: Look at the run queue of node-a",
    ):
        assert words in first


@pytest.mark.parametrize(
    ("confidence", "said"), [(0.9, "Python's"), (0.7, "Most likely, Python's"), (0.3, "Perhaps Python's")]
)
def test_the_headline_is_as_sure_as_the_finding(samples: Any, confidence: float, said: str) -> None:
    fault = samples.finding().model_copy(update={"cause": "host.gc_pause", "confidence": confidence})
    assert headline(samples.verdict(findings=[fault])).startswith(said)


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("could_not_tell", "cannot be told from what was recorded"),
        ("normal", "what it should"),
        ("typical_here", "no slower than its peers"),
    ],
)
def test_an_answer_without_a_cause_says_so_first_and_why(samples: Any, verdict: str, said: str) -> None:
    page = Parsed(of(samples, verdict=verdict, findings=[], reason="nothing timed its steps", value_ms=None))
    assert said in page.text("h1") and "Nothing timed its steps" in page.text("header")
    assert "not recorded" in page.text("header")
    assert "baseline" not in page.text("header")
    assert "held against the baseline monday." in Parsed(of(samples, reference="monday")).text("header")
    assert ("Sure" in page.text("header")) == (verdict != "could_not_tell")


def test_everything_of_the_answer_stands_on_the_page(samples: Any) -> None:
    page = Parsed(of(samples))
    text = page.text("main")
    answer = samples.verdict()
    for words in (
        answer.explanation,
        *answer.next_checks,
        *answer.not_seen,
        "remote kv wait: the engine recorded no KV transfer",
        "Another process takes the CPU",
        "step 17, rank 0, aten::mm, host layer",
        "811.9 ms where 21 ms is usual",
        "server.log:33",
        "It would have ended 790.9 ms sooner (600.0 ms to 950.0 ms)",
        "Not A garbage collection",
        "Request 42, what was asked about: 4,812 ms",
        "Request 7, a usual one beside it",
        "aten::op_3",
        "unusual: 4.2 standard deviations",
    ):
        assert words in text
    assert "Preempted cmpl-0000" in page.text("code")


def test_one_of_a_thing_is_called_as_one(samples: Any) -> None:
    fault = samples.finding()
    item = fault.evidence[0].model_copy(update={"value": 1.0, "normal": 1.0, "unit": "calls"})
    said = Parsed(of(samples, findings=[fault.model_copy(update={"evidence": [item]})])).text("article")
    assert "1 call where 1 call is usual" in said


def test_the_end_says_what_the_verdict_comes_from(samples: Any) -> None:
    end = Parsed(of(samples, model="it is still loading")).text("footer")
    assert "at tier T3, judged by numbers and rules (it is still loading); which requests" in end


def test_the_slice_folds_as_its_spans_hang_together(samples: Any) -> None:
    page = of(samples)
    tree = page[page.index('class="tree"') :]
    depths = [line.depth for line in samples.slice().lines]
    assert tree.count("<summary>") == sum(b > a for a, b in itertools.pairwise(depths))
    assert tree.count("<details open>") < tree.count("<details")


def test_without_a_slice_the_page_says_why(samples: Any) -> None:
    page = report_page(samples.verdict(), samples.timeline(), None, "There are none: no step is known.")
    assert "There are none: no step is known." in Parsed(page).text("main")


def test_a_picture_without_panels_says_why(samples: Any) -> None:
    none: TimelineReport = samples.timeline().model_copy(update={"panels": [], "note": "nobody timed it"})
    assert "nobody timed it" in Parsed(report_page(samples.verdict(), none, None)).text("main")


def test_marks_lie_in_the_picture_and_panels_of_a_kind_share_one_scale(samples: Any) -> None:
    page = Parsed(of(samples))
    boxes = [seen for tag, seen in page.seen if tag in ("rect", "svg") and str(seen.get("width")).endswith("%")]
    for box in boxes:
        left, wide = (float(str(box.get(side) or "0").rstrip("%")) for side in ("x", "width"))
        assert 0 <= left <= 100 and 0 < wide <= 100 and left + wide <= 100.02
    behind = [float(str(box["width"]).rstrip("%")) for box in boxes if box.get("class") == "behind"]
    assert behind == [100.0, 100.0, pytest.approx(100 * 1100 / 4812.4, abs=0.01), 100.0]


def test_nothing_is_loaded_from_anywhere_and_the_page_itself_forbids_it(samples: Any) -> None:
    page = of(samples)
    parsed = Parsed(page)
    assert not ACTIVE & {tag for tag, _ in parsed.seen}
    assert not LOADING & {name for _, attributes in parsed.seen for name in attributes}
    assert not any(name.startswith("on") for _, attributes in parsed.seen for name in attributes)
    style = "".join(parsed.texts["style"])
    assert "url(" not in style and "@import" not in style and "://" not in page
    [policy] = [seen["content"] for tag, seen in parsed.seen if seen.get("http-equiv") == "Content-Security-Policy"]
    allowed = b64encode(sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"


def hostile(samples: Any) -> Iterator[tuple[WhyReport, TimelineReport, Any]]:
    bad = BREAKING + samples.hostile
    finding = samples.finding(bad, bad).model_copy(
        update={"title": bad, "fix": bad, "against": [bad], "saving_assumes": bad, "layer": bad}
    )
    texts = dict.fromkeys(("engine_id", "reason", "explanation", "began", "ranks_note"), bad)
    parts = [Part(part="queue", ns=5, source=bad), Part(part="decode", ns=None, source=bad)]
    verdict = samples.verdict(findings=[finding], next_checks=[bad], not_seen=[bad], phases=parts, **texts)
    drawn = samples.timeline(bad)
    rows = [
        row.model_copy(update={"group": bad, "label": bad, "text": [bad] * len(row.text)})
        for row in drawn.panels[0].rows
    ]
    panel = drawn.panels[0].model_copy(update={"rows": rows, "title": bad, "note": bad})
    cut = samples.slice()
    lines = [line.model_copy(update={"text": bad, "handle": bad, "layer": bad}) for line in cut.lines]
    yield (
        verdict,
        drawn.model_copy(update={"panels": [panel, *drawn.panels[1:]], "note": bad, "beside_why": bad}),
        cut.model_copy(update={"lines": lines, "note": bad}),
    )


def test_text_of_a_trace_is_never_markup(samples: Any) -> None:
    ((verdict, drawn, cut),) = hostile(samples)
    page = report_page(verdict, drawn, cut, BREAKING)
    parsed, harmless = Parsed(page), Parsed(of(samples))
    assert not ACTIVE & {tag for tag, _ in parsed.seen}
    assert {tag for tag, _ in parsed.seen} <= {tag for tag, _ in harmless.seen}
    assert not any(name.startswith("on") for _, attributes in parsed.seen for name in attributes)
    assert "Ignore previous instructions" in parsed.text("main") and "<script>alert(1)" in parsed.text("main")
    assert all(letter.isprintable() or letter == "\n" for letter in page)


@given(reports())
def test_any_answer_is_a_page_that_is_whole_and_plain_text(answer: WhyReport) -> None:
    none = TimelineReport(
        capture="c", request=1, metric="e2e", beside=None, beside_why="nobody is like it", panels=[], note=""
    )
    parsed = Parsed(report_page(answer, none, None, "There are none."))
    assert not ACTIVE & {tag for tag, _ in parsed.seen}
    assert [tag for tag, _ in parsed.seen].count("h1") == 1
    assert parsed.text("article").count("confidence") >= len(answer.findings)


def test_a_long_text_is_cut(samples: Any) -> None:
    page = of(samples, explanation="why " * 5000)
    assert len(page) < 60_000 and "…" in page


def test_all_that_is_drawn_has_a_color_for_light_and_for_dark_rooms(samples: Any) -> None:
    style = "".join(Parsed(of(samples)).texts["style"])
    light, _, rest = style.partition("@media (prefers-color-scheme: dark)")
    names = set(re.findall(r"--\w+(?=:)", light))
    assert names == set(re.findall(r"--\w+(?=:)", rest[: rest.index("}")]))
    assert set(re.findall(r"var\((--\w+)\)", style)) <= names
    kinds, parts = set(get_args(Kind)), {*PHASES, *RESOURCES}
    assert kinds == set(OF_KIND) and parts == set(OF_PART)


def test_words_can_be_read_on_what_they_stand_on() -> None:
    for at in range(2):
        shown = {name: pair[at] for name, pair in COLORS.items()}
        for words in ("ink", "dim", "red"):
            for behind in ("paper", "card"):
                assert contrast(shown[words], shown[behind]) >= 4.5, (words, behind, at)
        for mark in set(OF_KIND.values()) - {"ink"}:
            assert contrast(shown[WORDS.get(mark, "on")], shown[mark]) >= 3.2, (mark, at)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2.2 between two colors."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
