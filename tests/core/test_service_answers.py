"""From pages of /metrics and spans of several services to answers, by way of the store."""

import shutil
from pathlib import Path

from teller_core import answers
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from teller_core.tell.layout import Style
from teller_core.tell.text import page
from teller_mcp.answers import to_text

DATA = Path(__file__).parents[1] / "data"
PLAIN = Style(width=100, color=False, unicode=False)
FIRST = 1_795_962_000
"""Unix s: when the first page was fetched."""
BOUNDS = (0.5, 1.0, 5.0, float("inf"))


def pages(folder: Path, waiting: list[int], durations: list[list[float]]) -> Path:
    """A page every 15 seconds, dated by its name: the queue, the cache and all durations so far."""
    folder.mkdir()
    seen: list[float] = [0.1] * 50
    for i, (queue, more) in enumerate(zip(waiting, durations, strict=True)):
        seen += more
        lines = ["# TYPE vllm:num_requests_waiting gauge", f'vllm:num_requests_waiting{{engine="0"}} {queue}']
        lines += [f'vllm:kv_cache_usage_perc{{engine="0"}} {min(1.0, 0.5 + queue / 20)}']
        lines += [f'vllm:num_preemptions_total{{engine="0"}} {3 * i}']
        lines += [
            f'vllm:e2e_request_latency_seconds_bucket{{engine="0",le="{str(bound).replace("inf", "+Inf")}"}} '
            f"{sum(one <= bound for one in seen)}"
            for bound in BOUNDS
        ]
        (folder / f"metrics-{FIRST + 15 * i}.prom").write_text("\n".join(lines) + "\n")
    return folder


def test_a_service_of_which_only_metrics_are_known_says_what_it_counted(tmp_path: Path) -> None:
    folder = pages(tmp_path / "m", [0, 0, 1, 4, 8, 12], [[], [0.2, 0.3], [0.7], [0.8, 3.0], [4.0], [9.0, 0.4]])
    with Store.open(tmp_path / "t.db") as store:
        (report,) = import_paths([folder], store).captures
        assert {file.clock for file in report.files} == {"name"}
        said = answers.slow(store)
        (measure,) = said.service
        assert (measure.count, measure.start, measure.stop) == (8, FIRST * 10**9, (FIRST + 75) * 10**9)
        assert (measure.p50.above_ms, measure.p50.at_most_ms) == (500.0, 1000.0)
        assert measure.p99.at_most_ms is None
        assert "dates of their files" not in said.note
        assert "Up to 12 requests waited at once, and more and more: from 0 to 10 on average." in said.note
        assert "The KV cache was 100 % full at most." in said.note
        assert "Requests were evicted 15 times." in said.note
        drawn = page(said, PLAIN)
        assert "500.0 ms to 1,000 ms" in drawn
        assert "over 5,000 ms" in drawn


def test_a_page_that_only_its_file_dates_says_so(tmp_path: Path) -> None:
    folder = pages(tmp_path / "m", [0], [[0.2]])
    (folder / f"metrics-{FIRST}.prom").rename(folder / "metrics.prom")
    with Store.open(tmp_path / "t.db") as store:
        import_paths([folder], store)
        assert "told by the dates of their files alone" in answers.slow(store).note


def test_two_engines_behind_a_gateway_are_one_request_with_every_phase(tmp_path: Path) -> None:
    shutil.copy(DATA / "otlp_json" / "a_gateway_before_two_engines" / "input.jsonl", tmp_path / "spans.jsonl")
    with Store.open(tmp_path / "t.db") as store:
        (report,) = import_paths([tmp_path / "spans.jsonl"], store).captures
        assert (report.requests, report.tier) == (1, 1)
        why = answers.why(store, "1")
        phases = {part.part: part.ns for part in why.phases}
        assert sum(ns or 0 for ns in phases.values()) == 1_200_000_000
        assert phases["before_server"] == 20_000_000
        assert phases["remote_kv_wait"] == 160_000_000
        assert phases["unexplained"] == 0
        assert [finding.cause for finding in why.findings] == ["comm.kv_transfer"]
        kept = store.capture(report.id)
        assert kept.transfers.stop.tolist() == [kept.transfers.start[0] + 160_000_000]


def test_a_page_beside_spans_is_evidence_and_no_request(tmp_path: Path) -> None:
    folder = pages(tmp_path / "both", [0, 9], [[], [0.4]])
    shutil.copy(DATA / "otel_spans" / "vllm" / "input.jsonl", folder / "spans.jsonl")
    with Store.open(tmp_path / "t.db") as store:
        (report,) = import_paths([folder], store).captures
        assert (report.requests, report.engine) == (1, "vllm")
        said = answers.slow(store)
        assert len(said.rows) == 1
        assert {one.name for one in said.levels} == {"waiting", "kv_usage", "preemptions"}
        assert "What it counted" not in page(said, PLAIN)
        assert len(to_text(said.model_dump(mode="json"))) < 6_000
