"""What is said when a recording begins and when it has ended: short, on lines that fit, and with what is missing."""

from teller_core.data.report_recording import CaptureRunReport, DoctorCheck
from teller_core.tell.layout import Style
from teller_core.tell.recording_page import begin_line, recording_page, window_line

REPORT = CaptureRunReport(
    folder="teller-vllm",
    engine="vllm",
    exit=0,
    duration_ms=61_234.5,
    bytes=4_200_000,
    processes=3,
    requests=1,
    engine_steps=420,
    windows=0,
    on=["hooks"],
    off=[],
    dropped=[],
    lost=0,
    recorder_cpu_ms=12.0,
    checks=[],
    next_call="teller import teller-vllm",
)


def test_the_beginning_names_what_could_not_be_switched_on_but_not_what_was_declined_or_is_another_engines() -> None:
    off = {"nvtx": "there is no C compiler here", "log": "it was declined", "plugin": "only vLLM has it"}
    assert begin_line("f\x1b[2J", ["hooks", "samples"], off, ["log"]) == [
        "teller: recording hooks, samples into f [2J",
        "teller: no nvtx: there is no C compiler here",
    ]
    assert begin_line("f", [], {}, []) == ["teller: recording output only into f"]


def test_who_opens_a_window_by_hand_is_told_the_recorders_number() -> None:
    assert window_line(4711, 10) == "teller: to profile 10 steps at any moment: kill -USR1 4711"


def test_the_end_of_a_good_recording_is_what_was_seen_and_the_next_call() -> None:
    assert recording_page(REPORT, Style(width=120)) == [
        "teller: the command ended with 0 after 61.2 s, 4.2 MB of 3 processes, 1 request, 420 steps.",
        "teller: next: teller import teller-vllm",
    ]


def test_what_is_missing_is_told_on_lines_that_fit() -> None:
    check = DoctorCheck(part="steps", state="no", found="none was recorded", next="See what is off below")
    changed = {"exit": -9, "requests": None, "windows": 2, "lost": 7, "checks": [check]}
    lines = recording_page(REPORT.model_copy(update=changed), Style(width=60))
    assert all(len(line) <= 60 for line in lines)
    text = " ".join(lines)
    assert "ended by signal 9 after" in text and "2 windows" in text and "request" not in text
    assert "steps: none was recorded. See what is off below." in text
    assert "the disk did not take 7 lines" in text
