"""Readers of what callers and proxies measured, against counts made without them, and what they must never keep."""

import gzip
import json
import re
import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data.table import UNKNOWN
from teller_core.ingest.callers import arrivals, bench_results
from teller_core.ingest.formats import reader_of, sniffed
from teller_core.ingest.found import Found, Place
from teller_core.ingest.proxies import access_log
from teller_core.ingest.proxies.text_lines import clf_time, path_of, text_access

DATA = Path(__file__).parents[3] / "data"
MOONCAKE = Path(__file__).parents[5] / "shared" / "traces" / "arrivals" / "mooncake_conversation_trace.jsonl.gz"
OURS = (
    "access_log",
    "aiperf",
    "aiperf_summary",
    "arrivals",
    "bench_results",
    "guidellm",
    "llmperf",
    "perf_analyzer",
)
CASES = sorted(path for name in OURS for path in (DATA / name).glob("*/input.*"))
SECONDS = st.floats(1e-6, 1e4)
RUN = st.lists(
    st.tuples(st.integers(0, 10**6), SECONDS, st.lists(SECONDS, max_size=4), SECONDS), min_size=1, max_size=8
)


def ns(seconds: float) -> int:
    return int((Decimal(repr(seconds)) * 10**9).to_integral_value())


def read_text(tmp_path: Path, name: str, text: str) -> Found:
    path = tmp_path / "input"
    path.write_text(text)
    assert sniffed(text.encode()[: 1 << 16]) == name
    return reader_of(name)(path, Place(), None)


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_every_record_is_kept_or_counted_and_no_text_of_anybody_is_kept(path: Path) -> None:
    found = reader_of(path.parent.parent.name)(path, Place(), None)
    assert found.events == found.kept + sum(found.other.values()) + sum(found.problems.values())
    kept = repr(found).lower()
    for word in ("never", "keep", "api-key", "curl", "192.0.2", "httpx", "?"):
        assert word not in kept


@given(run=RUN, details=st.booleans())
@settings(max_examples=60)
def test_a_benchmark_is_read_as_the_standard_library_counts_it(
    tmp_path_factory: pytest.TempPathFactory, run: list[tuple[int, float, list[float], float]], details: bool
) -> None:
    document: dict[str, Any] = {"date": "20270101-101112", "model_id": "m", "num_prompts": len(run), "duration": 1.5}
    if details:
        document |= {
            "input_lens": [one[0] for one in run],
            "output_lens": [len(one[2]) + 1 for one in run],
            "ttfts": [one[1] for one in run],
            "itls": [one[2] for one in run],
            "start_times": [one[3] for one in run],
            "generated_texts": ['\\"]}' for _ in run],
            "errors": ["" for _ in run],
        }
    found = read_text(tmp_path_factory.mktemp("bench"), bench_results.NAME, json.dumps(document))
    assert {metric.name: metric.value for metric in found.metrics} == {
        "vllm_bench:num_prompts": len(run),
        "vllm_bench:duration": 1.5,
    }
    assert len(found.clients) == (len(run) if details else 0)
    for client, (prompt, first, gaps, start) in zip(found.clients, run, strict=False):
        assert (client.start, client.prompt_tokens, client.output_tokens) == (ns(start), prompt, len(gaps) + 1)
        assert client.end == ns(start) + ns(first) + sum(map(ns, gaps))
        assert [
            late - early for early, late in zip([client.start, *client.token_times], client.token_times, strict=False)
        ] == [
            ns(first),
            *map(ns, gaps),
        ]


@given(
    at=st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)),
    quarters=st.integers(-48, 56),
    took=st.integers(0, 10**7),
)
def test_a_line_of_nginx_gives_back_its_times_in_any_zone(at: datetime, quarters: int, took: int) -> None:
    zoned = at.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=15 * quarters)))
    line = f'h - - [{zoned:%d/%b/%Y:%H:%M:%S %z}] "POST /v1/x?a=b HTTP/1.1" 200 5 "-" "a" rt={took / 1000:.3f} urt="-"'
    access = text_access(line)
    assert access is not None
    assert access.end == int(zoned.timestamp()) * 10**9
    assert access.end - access.start == took * 10**6
    assert (access.path, access.zoned, access.resolution) == ("/v1/x", True, 10**9)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/v1/completions?key=secret", "/v1/completions"),
        ("https://user:pass@host:443/v1/x?q", "/v1/x"),
        ("/a#b", "/a"),
        ("/a;jsessionid=secret", "/a"),
        ("*", "*"),
        ("/" + "a" * 500, "/" + "a" * 127),
    ],
)
def test_of_a_target_only_the_path_is_kept(target: str, path: str) -> None:
    assert path_of(target) == path


@pytest.mark.parametrize(
    "text", ["10/Foo/2026:13:55:36 +0000", "32/Oct/2026:13:55:36 +0000", "10/Oct/2026:25:55:36 +0000", ""]
)
def test_no_time_is_unknown(text: str) -> None:
    assert clf_time(text)[0] == UNKNOWN


@pytest.mark.parametrize(
    "line",
    [
        'INFO:     127.0.0.1:50000 - "POST /v1/completions HTTP/1.1" 200 OK',
        '192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "POST /v1/completions HTTP/1.1" 200 1234 "-" "curl/8"',
        "INFO 06-10 06:16:16 [async_llm.py:261] Added request cmpl-1.",
        '{"message": "hello", "created": 1791640536.1, "levelname": "INFO"}',
    ],
)
def test_a_log_without_durations_is_none_of_ours(line: str) -> None:
    assert not access_log.sniff(line.encode() * 3)
    assert text_access(line) is None


@pytest.mark.parametrize("repeated", ['"', "\\", "[", "- ", ", 0.001", " 0.001", "a=b ", "{} "])
def test_hostile_lines_take_no_longer_than_long_ones(repeated: str) -> None:
    """Sixteen thousand characters at most are looked at, and no pattern goes over them again and again."""
    prefix = 'h - - [10/Oct/2026:13:55:36 +0000] "POST /v1/x HTTP/1.1" 200 5 "-" "a"'
    begun = time.process_time()
    for line in (prefix + repeated * 4000, repeated * 4000, "h2 " + repeated * 4000):
        text_access(line[: access_log.MAX_LINE])
    assert time.process_time() - begun < 2


@pytest.mark.skipif(not MOONCAKE.exists(), reason="the traces of others are not at hand")
def test_mooncakes_trace_is_read_whole() -> None:
    with gzip.open(MOONCAKE, "rt") as file:
        rows = [json.loads(line) for line in file]
    found = arrivals.read(MOONCAKE, Place(), None)
    assert (found.events, found.kept, dict(found.problems), found.clock) == (12031, 12031, {}, "local")
    assert [client.start for client in found.clients] == [row["timestamp"] * 10**6 for row in rows]
    assert sum(client.prompt_tokens or 0 for client in found.clients) == sum(row["input_length"] for row in rows)
    assert sum(client.output_tokens or 0 for client in found.clients) == sum(row["output_length"] for row in rows)
    seen: set[int] = set()
    shared = 0
    for row in rows:
        for block in row["hash_ids"]:
            if block not in seen:
                break
            shared += 1
        seen |= set(row["hash_ids"])
    counts = {metric.name: metric.value for metric in found.metrics}
    assert counts == {"arrivals:blocks": sum(len(row["hash_ids"]) for row in rows), "arrivals:shared_blocks": shared}


def test_ids_that_went_with_a_request_name_it(tmp_path: Path) -> None:
    text = (DATA / "access_log" / "envoy_default" / "input.log").read_text()
    found = read_text(tmp_path, access_log.NAME, text)
    assert [span.request for span in found.spans] == re.findall(r'"([0-9a-f-]{36})" "llm', text)
