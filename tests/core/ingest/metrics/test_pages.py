"""Pages of /metrics: their text, and when they were fetched."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.table import UNKNOWN
from teller_core.errors import LimitError
from teller_core.ingest.found import Found, Place
from teller_core.ingest.metrics import api as prometheus_json
from teller_core.ingest.metrics import keeping as prometheus_page
from teller_core.ingest.metrics import page as prometheus
from teller_core.ingest.metrics.keeping import labels_of, number, page_time
from teller_core.ingest.metrics.names import MEANINGS, meaning_of

S = 10**9
FETCHED = 1_795_979_580 * S
PAGE = Path(__file__).parents[5] / "shared" / "captures" / "vllm_engine_profile" / "metrics.prom"


def read(folder: Path, text: str, name: str = "page.prom", written: int = 0) -> Found:
    path = folder / name
    path.write_text(text)
    return prometheus.read(path, Place(written=written), None)


@pytest.mark.parametrize(
    ("name", "written", "time", "clock"),
    [
        ("metrics-1795979580.prom", 7 * S, FETCHED, "name"),
        ("metrics_1795979580123.txt", 7 * S, FETCHED + 123_000_000, "name"),
        ("m-2026-11-29T19:13:00Z.prom", 7 * S, FETCHED, "name"),
        ("m-20261129T201300+0100.prom", 7 * S, FETCHED, "name"),
        ("m_20261129-211300.prom", FETCHED + 20 * S, FETCHED, "name"),
        ("m_20261129-191300.prom", 7 * S, FETCHED, "wall"),
        ("m_20261329-191300.prom", 7 * S, 7 * S, "date"),
        ("metrics.prom", FETCHED, FETCHED, "date"),
        ("metrics.prom", 0, UNKNOWN, "unix"),
        ("build-12345678901234567890123.prom", FETCHED, FETCHED, "date"),
    ],
)
def test_when_a_page_without_times_was_fetched(name: str, written: int, time: int, clock: str) -> None:
    assert page_time(Path(name), written) == (time, clock)


def test_a_page_with_times_of_its_own_keeps_them(tmp_path: Path) -> None:
    found = read(tmp_path, "a 1 1795979580000\nb 2 1795979580\n", written=5)
    assert ([metric.time for metric in found.metrics], found.clock) == ([FETCHED, FETCHED], "unix")


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp", "Zs")) | st.sampled_from('"\\{},= '), max_size=12
)


@given(
    labels=st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True), TEXT, max_size=4),
    comma=st.booleans(),
)
def test_labels_come_back_as_they_were_written(labels: dict[str, str], comma: bool) -> None:
    written = ",".join(
        '{}="{}"'.format(key, value.replace("\\", r"\\").replace('"', r"\"")) for key, value in labels.items()
    )
    assert labels_of(written + ("," if comma and labels else "")) == labels


@pytest.mark.parametrize("text", ['a="1" b="2"', 'a="1",,', "a=1", '="1"', 'a="1', '"a"="1'])
def test_what_is_no_list_of_labels_is_none(text: str) -> None:
    assert labels_of(text) is None


@pytest.mark.parametrize(
    ("text", "value"), [("1e3", 1000.0), ("+Inf", float("inf")), (".5", 0.5), ("1_0", None), ("0x1", None), ("", None)]
)
def test_numbers_are_as_prometheus_writes_them(text: str, value: float | None) -> None:
    assert number(text) == value


def test_names_that_a_monitoring_system_rewrote_mean_the_same() -> None:
    assert (
        meaning_of("vllm:num_preemptions_total", {})
        == meaning_of("vllm_num_preemptions", {})
        == MEANINGS["vllm_num_preemptions"]
    )
    assert meaning_of("nv_trt_llm_request_metrics", {"request_type": "max"}) is None


def test_processes_that_expose_the_same_series_are_told_apart_by_when_they_began(tmp_path: Path) -> None:
    text = "vllm:num_requests_waiting 3\nprocess_start_time_seconds {}\n"
    sources = {read(tmp_path, text.format(begun)).metrics[0].source for begun in (1.5, 1.5, 2.5)}
    assert sources == {"started=1.50", "started=2.50"}


@pytest.mark.skipif(not PAGE.exists(), reason="the recorded page is not at hand")
def test_every_line_of_a_real_page_is_a_reading_or_a_comment() -> None:
    lines = PAGE.read_text().splitlines()
    found = prometheus.read(PAGE, Place(), None)
    comments = sum(line.startswith("#") or not line.strip() for line in lines)
    assert (found.events, found.kept, dict(found.other)) == (len(lines), len(lines) - comments, {"comment": comments})
    assert not found.problems
    assert {"ttft", "itl", "e2e", "queue", "kv_usage", "waiting", "preemptions"} <= {
        metric.means for metric in found.metrics
    }


def test_more_readings_than_memory_has_room_for_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_page, "MAX_READINGS", 2)
    with pytest.raises(LimitError):
        read(tmp_path, "a 1\na 2\na 3\n")


@pytest.mark.parametrize("text", ["http_server 12 started", "vllm:x one", "up", "INFO 06-10 vllm: 1"])
def test_a_log_is_no_page(text: str) -> None:
    assert not prometheus.sniff(f"{text}\n{text}\n".encode())


def test_an_answer_of_another_service_is_no_answer_of_prometheus() -> None:
    assert not prometheus_json.sniff(b'{"status": "success", "data": []}')
