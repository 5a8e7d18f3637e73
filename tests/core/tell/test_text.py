"""Pages for a terminal."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from teller_core.data.report import CapturesReport, Coverage, DemoReport, Part, Together, TruthReport
from teller_core.tell.layout import Style, milliseconds, plain, table
from teller_core.tell.text import page

PLAIN = Style(width=80)


def test_a_verdict_shows_its_cause_its_evidence_its_fix_and_what_was_not_seen(samples: Any) -> None:
    shown = page(samples.verdict(), PLAIN)
    for words in (
        "Request 42 (cmpl-0000): 4,812 ms end to end",
        "CAUSE FOUND  confidence 0.87",
        "tier T3, 12 of 30 steps profiled, mapping recorded",
        "1. Another process takes the CPU",
        "- aten::mm, step 17, 811.9 ms, normally 21 ms, span 0:1234",
        "790.9 ms sooner (600.0 ms to 950.0 ms)",
        "Fix: Give the service cores of its own.",
        "No profile overlaps 18 of its 30 steps.",
        "teller slice step 17",
    ):
        assert words in shown


def test_bars_show_shares_and_a_part_without_a_source_says_why(samples: Any) -> None:
    lines = page(samples.verdict(), PLAIN).splitlines()
    [decode] = [line for line in lines if line.startswith("  decode")]
    [queue] = [line for line in lines if line.startswith("  queue")]
    assert "73%" in decode and "25%" in queue
    assert decode.count("\u2588") == pytest.approx(3 * queue.count("\u2588"), abs=2)
    assert any("Nothing in: preempted" in line for line in lines)
    assert any("remote kv wait  not seen: the engine recorded no KV transfer" in line for line in lines)
    assert "\u2588" not in page(samples.verdict(), Style(width=80, unicode=False))


def test_parts_that_nobody_saw_for_one_reason_are_told_together(samples: Any) -> None:
    dark = [Part(part=name, ns=None, source="no profile") for name in ("device_compute", "device_idle")]
    whole = Part(part="unexplained", ns=10, source="what remains")
    shown = page(samples.verdict(resources=[*dark, whole]), PLAIN)
    assert "  Not seen: device compute, device idle: no profile\n" in shown
    assert shown.count("no profile") == 1


@pytest.mark.parametrize("verdict", ["normal", "typical_here", "could_not_tell"])
def test_a_verdict_without_a_cause_is_a_page_too(samples: Any, verdict: str) -> None:
    report = samples.verdict(verdict=verdict, findings=[], phases=[], resources=[], value_ms=None, explanation="")
    shown = page(report, PLAIN)
    assert verdict.replace("_", " ").upper() in shown
    assert "Request 42 (cmpl-0000): not recorded, end to end" in shown
    assert "teller slice request 42" in shown


def test_a_saving_with_new_batches_stands_below_the_one_with_the_same(samples: Any) -> None:
    one = samples.finding()
    anew = {
        "rescheduled_ms": 500.0,
        "rescheduled_low_ms": 400.0,
        "rescheduled_high_ms": 600.0,
        "rescheduled_assumes": "x",
    }
    told = page(samples.verdict(findings=[one.model_copy(update=anew)]), PLAIN)
    assert "With batches made anew 500.0 ms sooner (400.0 ms to 600.0 ms)." in told
    silent = page(samples.verdict(findings=[one.model_copy(update={"rescheduled_assumes": "no arrivals"})]), PLAIN)
    assert "With batches made anew no saving is claimed: no arrivals" in silent
    assert "made anew" not in page(samples.verdict(findings=[one]), PLAIN)


def test_a_saving_that_is_not_claimed_says_why(samples: Any) -> None:
    finding = samples.finding().model_copy(update={"saving_ms": None, "saving_assumes": "no graph was recorded"})
    assert "No saving is claimed: no graph was recorded" in page(samples.verdict(findings=[finding]), PLAIN)


def test_nothing_from_a_trace_can_drive_the_terminal(samples: Any) -> None:
    finding = samples.finding(samples.hostile, samples.hostile)
    verdict = samples.verdict(findings=[finding], engine_id=samples.hostile, explanation=samples.hostile)
    lines = [samples.slice(3).lines[0].model_copy(update={"text": samples.hostile, "handle": samples.hostile})]
    cut = samples.slice().model_copy(update={"lines": lines})
    capture = samples.capture().model_copy(update={"name": samples.hostile, "engine": samples.hostile})
    for report in (verdict, cut, CapturesReport(captures=[capture])):
        shown = page(report, PLAIN)
        assert "Ignore previous" in shown
        assert all(letter.isprintable() or letter == "\n" for letter in shown)


def test_color_is_nothing_but_color(samples: Any) -> None:
    colored = page(samples.verdict(), Style(width=80, color=True))
    assert "\x1b[31;1mCAUSE FOUND\x1b[0m" in colored
    for code in ("0", "1", "2", "36", "31;1"):
        colored = colored.replace(f"\x1b[{code}m", "")
    assert colored.split() == page(samples.verdict(), PLAIN).split()


def test_a_narrow_table_stacks_its_heads_and_cuts_its_widest_words() -> None:
    rows = [["a" * 40, 1.5, "short"], ["b", 22.25, "words"]]
    shown = [line.rstrip() for line in table(["name", "over_all_ms", "kind"], rows, Style(width=24))]
    assert shown == [
        "             over",
        "              all",
        "name           ms  kind",
        "aaaaaaaa...   1.5  short",
        "b            22.2  words",
    ]


def test_the_sides_of_a_comparison_are_told_apart(samples: Any) -> None:
    report = samples.comparison().model_copy(update={"before": "a" * 64 + "/12", "after": "a" * 64 + "/42"})
    assert page(report, PLAIN).startswith("Requests: aaaaaaaaaaaa/42 against aaaaaaaaaaaa/12")


def test_a_named_cause_stands_in_the_place_of_its_verdict(samples: Any) -> None:
    slow = samples.table(2)
    rows = [[*slow.rows[0], "host.gc_pause"], [*slow.rows[1][:-1], "typical_here", None]]
    shown = page(slow.model_copy(update={"columns": [*slow.columns, "cause"], "rows": rows}), Style(width=120))
    assert [line.split()[-1] for line in shown.splitlines()[2:5]] == ["verdict", "host.gc_pause", "typical_here"]


def test_a_column_that_nobody_measured_is_left_out() -> None:
    assert table(["a", "b"], [[1, None], [2, None]], PLAIN) == ["a", "1", "2"]


def test_the_decimals_of_a_column_follow_its_numbers() -> None:
    assert table(["a", "b", "c"], [[0.012, 1.5, 1200.0], [20.0, None, 3.14]], PLAIN) == [
        "     a     b        c",
        " 0.012  1.50  1,200.0",
        "20.000     -      3.1",
    ]


def test_nothing_imported_says_how_to_begin() -> None:
    assert page(CapturesReport(captures=[]), PLAIN) == "Nothing is imported yet. Start with: teller import PATH"


def test_a_line_of_a_slice_is_not_taken_for_a_span(samples: Any) -> None:
    report = samples.slice(3).model_copy(update={"events": 763, "cut": 646})
    assert "3 lines for 117 of 763 spans, 646 left out" in page(report, PLAIN)


def test_the_slowest_calls_are_told_in_own_time_as_the_totals_are(samples: Any) -> None:
    called = samples.slice(1).lines[0].model_copy(update={"dur_ms": 23.7, "self_ms": 0.15, "handle": "0:48"})
    report = samples.operator()
    report = report.model_copy(update={"places": [report.places[0].model_copy(update={"slowest": [called]})]})
    assert "- 0:48  0.150 ms" in page(report, PLAIN)


@pytest.mark.parametrize(
    ("metric", "title"),
    [
        ("e2e", "Where the time went ("),
        ("ttft", "Where the time to its first token went ("),
        ("tpot", "Where the time after its first token went ("),
        ("itl_max", "Where its longest gap went ("),
    ],
)
def test_the_phases_of_a_metric_say_what_they_are_the_phases_of(samples: Any, metric: str, title: str) -> None:
    assert f"\n{title}" in page(samples.verdict(metric=metric), PLAIN)


def test_without_a_promise_nothing_is_said_to_be_against_one(samples: Any) -> None:
    assert "4,812 ms end to end" in page(samples.verdict(metric="slo"), PLAIN)
    assert "4,812 ms against its SLO" in page(samples.verdict(metric="slo", over_slo=2.4), PLAIN)


def test_a_file_that_was_left_out_says_why_and_one_is_no_plural(samples: Any) -> None:
    capture = samples.capture()
    left = capture.files[0].model_copy(update={"name": "notes.txt", "format": "", "problems": {"unknown_file": 1}})
    update = {"files": [left], "requests": 1, "steps": 1, "log_lines": 1, "redactions": 1}
    shown = " ".join(page(CapturesReport(captures=[capture.model_copy(update=update)]), PLAIN).split())
    assert "notes.txt: not read (unknown file)" in shown
    assert all(f"1 {thing}" in shown for thing in ("request,", "step (", "log line,", "redaction"))


def test_a_report_without_a_page_is_a_mistake(samples: Any) -> None:
    with pytest.raises(KeyError):
        page(DemoReport(truth=TruthReport(cause=None, struck=[]), answer=samples.verdict()), PLAIN)


@given(some.text(max_size=400), some.integers(4, 300))
def test_plain_text_is_printable_and_no_longer_than_asked(text: str, longest: int) -> None:
    shown = plain(text, longest)
    assert len(shown) <= longest
    assert shown.isprintable()


@pytest.mark.parametrize(
    ("value", "words"), [(None, "-"), (0.0123, "0.012 ms"), (12.34, "12.3 ms"), (1234.5, "1,234 ms"), (-2.0, "-2.0 ms")]
)
def test_durations_read_well_at_every_size(value: float | None, words: str) -> None:
    assert milliseconds(value) == words


def test_a_comparison_ends_with_where_to_look_further(samples: Any) -> None:
    update = {"before": "a" * 40, "after": "b" * 40}
    assert page(samples.comparison().model_copy(update=update), PLAIN).endswith(f"teller slow --capture {'b' * 12}")
    update = {"before": f"{'a' * 40}/3", "after": f"{'b' * 40}/7"}
    assert page(samples.comparison().model_copy(update=update), PLAIN).endswith(f"teller why 7 --capture {'b' * 12}")


def test_a_request_of_which_no_step_is_known_leads_to_its_peers(samples: Any) -> None:
    blind = samples.verdict(findings=[], coverage=Coverage(steps=None, profiled=0, mapping="unknown"))
    shown = page(blind, PLAIN)
    assert shown.endswith("See its peers: teller slow --metric e2e --capture 3f2a91c07be4")
    assert "teller slice" not in shown
    assert "its steps unknown" in shown


def test_a_capture_says_of_its_parts_only_what_it_has(samples: Any) -> None:
    log = samples.capture().model_copy(
        update={"ranks": [], "steps": 0, "kernels": 0, "redactions": 0, "clock_error_ns": None, "mapping": "unknown"}
    )
    shown = " ".join(page(CapturesReport(captures=[log]), PLAIN).split())
    assert "no steps, no ranks, no kernels, 612 log lines" in shown
    assert not any(word in shown for word in ("mapping", "clock error", "redaction"))


def test_a_file_that_steers_a_recorder_is_no_loss_of_a_capture(samples: Any) -> None:
    capture = samples.capture().model_copy(update={"problems": {"control_file": 2}})
    assert "Lost" not in page(CapturesReport(captures=[capture]), PLAIN)
    other = capture.model_copy(update={"problems": {"control_file": 2, "no_dur": 3}})
    assert "(3)" in page(CapturesReport(captures=[other]), PLAIN)


def test_several_causes_at_once_are_told_behind_each(samples: Any) -> None:
    both = Together(
        causes=["host.gc_pause", "host.io_stall"],
        saving_ms=40.0,
        saving_low_ms=30.0,
        saving_high_ms=50.0,
        saving_assumes="own_steps",
        rescheduled_ms=None,
        rescheduled_low_ms=None,
        rescheduled_high_ms=None,
        rescheduled_assumes="no arrivals",
    )
    shown = page(samples.verdict(findings=[samples.finding()], together=both), PLAIN)
    assert "Without host.gc_pause, host.io_stall, all of them at once" in shown
    assert "40.0 ms sooner (30.0 ms to 50.0 ms)" in shown and "no saving is claimed: no arrivals" in shown
