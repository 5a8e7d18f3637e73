"""A log alone, of an engine that tells what each request took: the slow list has it, and the answer uses it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from teller_core.data.report import ImportReport, WhyReport
from teller_core.data.table import UNKNOWN
from teller_core.pipeline import import_paths
from teller_core.store.store import Store

BEGIN = datetime(2026, 11, 29, 12, 0, 0, 1000, tzinfo=UTC)
SLOW = 7
MS = 10**6
COUNT = 12


Form = Callable[[int, float, float], list[tuple[float, str]]]


def at(ms: float) -> datetime:
    return BEGIN + timedelta(milliseconds=ms)


def tgi(number: int, queue: float, run: float) -> list[tuple[float, str]]:
    end = 400 * number + 1 + queue + run
    said = f'total_time="{1 + queue + run:.3f}ms" validation_time="1ms" queue_time="{queue:.3f}ms" inference_time="{run:.3f}ms"'
    line = f'generate{{{said} time_per_token="{run / 20:.6f}ms" seed="None"}}: text_generation_router::server: Success'
    return [(end, f"{at(end):%Y-%m-%dT%H:%M:%S.%f}Z  INFO {line}")]


def triton(number: int, queue: float, run: float) -> list[tuple[float, str]]:
    base = 400.0 * number
    states = [
        (base, "INITIALIZED"),
        (base + 1, "PENDING"),
        (base + 1 + queue, "EXECUTING"),
        (base + 1 + queue + run, "RELEASED"),
    ]
    said = "[request id: r-{}] Setting state from X to {}"
    return [
        (ms, f'I{at(ms):%m%d %H:%M:%S.%f} 1 infer_request.cc:132] "{said.format(number, state)}"')
        for ms, state in states
    ]


def ray(number: int, queue: float, run: float) -> list[tuple[float, str]]:
    end = 400.0 * number + queue + run
    name = f"{number:08x}-0000-4000-8000-000000000000"
    stamp = f"{at(end):%Y-%m-%d %H:%M:%S},{at(end).microsecond // 1000:03}"
    inner = f"(ServeReplica:a:L pid=6, ip=10.0.0.1) INFO {stamp} a_L px {name} -- CALL __call__ OK {run:.1f}ms"
    outer = f"(ProxyActor pid=7) INFO {stamp} proxy 10.0.0.1 {name} -- POST /v1/x 200 {run + queue:.1f}ms"
    return [(end, inner), (end, outer)]


def sglang(number: int, queue: float, run: float) -> list[tuple[float, str]]:
    end = 400.0 * number + queue + run
    meta = f"'prompt_tokens': 7, 'completion_tokens': 20, 'e2e_latency': {(queue + run) / 1000:.4f}"
    stamp = f"[{at(end):%Y-%m-%d %H:%M:%S}]"
    return [
        (
            end,
            f"{stamp} Finish: obj=GenerateReqInput(rid='r{number}', text='a secret'), out={{'meta_info': {{{meta}}}}}",
        ),
        (
            end,
            f"{stamp} Req Time Stats(rid=r{number}, input len=7, output len=20, type=unified): "
            f"queue_duration={queue:.2f}ms, forward_duration={run:.2f}ms, start_time=0.0",
        ),
    ]


def write(path: Path, lines: list[tuple[float, str]]) -> Path:
    path.write_text("\n".join(line for _, line in sorted(lines, key=lambda one: one[0])) + "\n", "utf-8")
    return path


def imported(path: Path, store: Store) -> tuple[ImportReport, WhyReport]:
    """What was imported, and the answer about the slowest request."""
    report = import_paths([path], store)
    capture = report.captures[0].id
    slowest = store.slow_rows(capture, "e2e", 1, None).rows[0]
    answer = store.answer(capture, slowest.request, "e2e")
    assert answer is not None
    return report, answer


@pytest.mark.parametrize("form", [tgi, triton, ray, sglang], ids=lambda form: form.__name__)
def test_the_slow_request_of_a_log_is_found_and_explained(form: Form, tmp_path: Path) -> None:
    lines = [line for n in range(COUNT) for line in form(n, 3000.0 if n == SLOW else 5.0, 300.0 + n)]
    with Store.open(tmp_path / "s.db") as store:
        report, answer = imported(write(tmp_path / "server.log", lines), store)
        rows = store.slow_rows(report.captures[0].id, "e2e", 50, None).rows
    assert report.captures[0].requests == len(rows) == COUNT
    assert report.captures[0].tier == answer.tier == 1
    assert rows[0].e2e == pytest.approx((3000 + 300 + SLOW) * MS, abs=3 * MS)
    assert all(row.e2e is not None and row.e2e != UNKNOWN for row in rows)
    assert sum(part.ns or 0 for part in answer.phases) == rows[0].e2e
    if form is not ray:
        assert rows[0].queue == pytest.approx(3000 * MS, abs=MS)
        assert answer.findings[0].cause == "scheduler.queue_saturation"
    else:
        front = next(part.ns for part in answer.phases if part.part == "front_end")
        assert front == pytest.approx(3000 * MS, abs=MS)
        assert answer.findings[0].cause == "frontend.input_processing"


def llamacpp(number: int, run: float, stamp: str) -> list[str]:
    """A task of 40 prompt tokens and 20 more; the tokens take 100 ms."""
    return [
        f"{stamp}slot launch_slot_: id  0 | task {number} | processing task",
        f"{stamp}slot print_timing: id  0 | task {number} | ",
        f"{stamp}prompt eval time = {run - 100:10.2f} ms /    40 tokens (    1.00 ms per token,  1000.00 tokens per second)",
        f"{stamp}       eval time =     100.00 ms /    20 tokens (    5.00 ms per token,   200.00 tokens per second)",
        f"{stamp}      total time = {run:10.2f} ms /    60 tokens",
    ]


@pytest.mark.parametrize("stamped", [False, True])
def test_a_log_of_llamacpp_tells_how_long_each_task_took_with_and_without_stamps(stamped: bool, tmp_path: Path) -> None:
    lines: list[str] = []
    for n in range(COUNT):
        stamp = f"Nov 29 12:00:{n * 4:02} box llama-server[77]: " if stamped else ""
        lines += llamacpp(n, 3000.25 if n == SLOW else 300.0 + n, stamp)
    path = tmp_path / "llama.log"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    with Store.open(tmp_path / "s.db") as store:
        report, answer = imported(path, store)
        rows = store.slow_rows(report.captures[0].id, "ttft", 50, None).rows
    assert (rows[0].e2e, rows[0].value) == (3000 * MS + MS // 4, 2900 * MS + MS // 4)
    assert len(rows) == COUNT
    assert {part.part: part.ns for part in answer.phases if part.ns} == {
        "own_prefill": 2900 * MS + MS // 4,
        "decode": 100 * MS,
    }
    assert ("times_by_order_of_lines" in report.captures[0].files[0].problems) is not stamped
