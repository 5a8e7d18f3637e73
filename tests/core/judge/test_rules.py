"""Rules that need records of their own: what a log line, a cache counter, a transport or a device tells, and what it does not."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from teller_core.data.capture import Capture, Collectives, Rank
from teller_core.data.readings import Readings
from teller_core.data.report import WhyReport
from teller_core.data.steps import Lines, Mapping, Participation, Role, StepWork
from teller_core.data.table import UNKNOWN, take
from teller_core.data.trace import Layer
from teller_core.judge import rules, rules_anatomy, rules_neighbors
from teller_core.judge.assess import assess
from teller_core.judge.diagnose import diagnose, diagnose_all, judge
from teller_core.judge.evidence import Clue
from teller_core.judge.prepare import prepare
from teller_core.judge.scene import scene
from tests.core.judge.service import Rows, Work, capture, requests_table, steps_table
from tests.core.judge.serving import MS, ZERO, Ask, Trouble, serve

CROWD = [Ask(at * 60) for at in range(40)]
STRUCK = 14


def named(report: WhyReport) -> list[str]:
    return [finding.cause for finding in report.findings]


def logged(made: Capture, rows: Sequence[tuple[float, str, dict[str, str]]]) -> Capture:
    n = len(rows)
    nothing = np.zeros(n, np.int64)
    return replace(
        made,
        lines=Lines(
            time=np.array([ZERO + int(at * MS) for at, _, _ in rows]),
            before=nothing,
            after=nothing + MS,
            level=["INFO"] * n,
            rule=[rule for _, rule, _ in rows],
            fields=[json.dumps(fields) for _, _, fields in rows],
            untrusted_text=["..."] * n,
            process=["host/7"] * n,
            file=np.zeros(n, np.int32),
            number=np.arange(1, n + 1, dtype=np.int32),
            step=np.full(n, -1, np.int32),
            request=np.full(n, -1, np.int32),
        ),
    )


@pytest.mark.parametrize(
    ("short", "left", "expected"), [((5, 6, 7, 8), 2000, True), ((6,), 2000, False), ((5, 6, 7, 8), 0, True)]
)
def test_a_prefix_that_is_cut_short_is_missed_where_its_neighbors_miss_it_too_else_it_is_a_new_one(
    short: tuple[int, ...], left: int, expected: bool
) -> None:
    made, numbers = serve([Ask(at * 250, prompt=2500, output=20) for at in range(16)])
    found = np.full(16, 4000, np.int32)
    found[list(short)] = left
    prompts = np.full(16, 5000, np.int32)
    told = replace(made, requests=replace(made.requests, prompt_tokens=prompts, cached_tokens=found))
    reports = [diagnose(told, numbers, request) for request in range(16)]
    assert ("scheduler.prefix_cache_miss" in named(reports[6])) == expected
    assert not any("scheduler.prefix_cache_miss" in named(reports[at]) for at in (0, 12))


@pytest.mark.parametrize(("missed", "expected"), [(32, False), (320, True)])
def test_prompts_that_part_inside_a_block_of_the_cache_have_not_missed_it(missed: int, expected: bool) -> None:
    made, numbers = serve([Ask(at * 250, prompt=2500, output=20) for at in range(16)])
    found = np.full(16, 4000, np.int32)
    found[4:10] -= missed
    told = replace(made.requests, prompt_tokens=np.full(16, 5000, np.int32), cached_tokens=found)
    reports = diagnose_all(replace(made, requests=told), numbers)
    assert ["scheduler.prefix_cache_miss" in named(report) for report in reports] == [
        4 <= at < 10 and expected for at in range(16)
    ]


@pytest.mark.parametrize(
    ("usage", "evicted", "cause"),
    [
        (0.99, 1, "scheduler.kv_preemption"),
        (0.99, 0, "scheduler.queue_saturation"),
        (0.3, 1, "scheduler.queue_saturation"),
    ],
)
def test_who_is_not_admitted_while_a_full_cache_evicts_waits_for_the_cache(
    usage: float, evicted: int, cause: str
) -> None:
    made, numbers = serve(CROWD, slots=3)
    n = len(made.steps.engine)
    often = np.where(np.arange(n) % 20 == 0, evicted, 0).astype(np.int32)
    full = replace(made, steps=replace(made.steps, kv_usage=np.full(n, usage), preempted=often))
    assert named(judge(prepare(full, numbers), 30))[:1] == [cause]


@pytest.mark.parametrize(("counted", "expected"), [(2.0, True), (0.0, False)])
def test_who_waits_while_the_engine_passes_requests_over_asked_for_something_that_is_compiled(
    counted: float, expected: bool
) -> None:
    made, numbers = serve(CROWD)
    requests = made.requests
    late = np.arange(len(requests.number)) == STRUCK
    queued = np.where(late, requests.scheduled - 120 * MS, requests.queued)
    received = np.where(late, queued - MS, requests.received)
    sent = np.where(late, received - MS, requests.client_start)
    at = int(requests.scheduled[STRUCK])
    read = np.array([at - 100 * MS, at])
    told = Readings(["deferred"] * 2, ["engine=0"] * 2, read, read, np.array([counted, 0.0]))
    moved = replace(requests, client_start=sent, received=received, queued=queued)
    report = judge(prepare(replace(made, requests=moved, readings=told), numbers), STRUCK)
    assert ("scheduler.grammar" in named(report)) == expected


@pytest.mark.parametrize(("cached", "expected"), [(0, True), (700, False)])
def test_a_prefix_is_missed_only_by_who_found_nothing_where_its_peers_found_much(cached: int, expected: bool) -> None:
    asks = [Ask(at * 250, prompt=100, output=20) for at in range(12)]
    asks[6] = Ask(6 * 250, prompt=5000, output=20)
    made, numbers = serve(asks)
    prompts = np.full(12, 1000, np.int32)
    found = np.full(12, 800, np.int32)
    found[6] = cached
    told = replace(made, requests=replace(made.requests, prompt_tokens=prompts, cached_tokens=found))
    row = prepare(told, numbers).expectation(6, "e2e")
    work = numbers.requests.by_work.copy()
    work[row] = 100 * MS
    report = judge(prepare(told, replace(numbers, requests=replace(numbers.requests, by_work=work))), 6)
    assert ("scheduler.prefix_cache_miss" in named(report)) == expected


@pytest.mark.parametrize(("others", "expected"), [("True", True), ("False", False)])
def test_a_missed_graph_is_told_only_where_other_steps_had_one(others: str, expected: bool) -> None:
    made, numbers = serve(CROWD, [Trouble("mystery", 800, 1300, 30)], mapped=False, tier=1)
    lines = [(100, "sglang.decode", {"graph": others}), (1000, "sglang.decode", {"graph": "False"})]
    report = judge(prepare(logged(made, lines), numbers), STRUCK)
    assert ("cuda.graph_miss" in named(report)) == expected


def test_evictions_that_only_the_log_tells_of_are_a_hint_for_slow_requests_alone() -> None:
    made, numbers = serve(CROWD, [Trouble("mystery", 800, 1300, 30)], mapped=False, tier=1)
    case = prepare(logged(made, [(1000, "sglang.retracted", {"requests": "2"})]), numbers)
    report = judge(case, STRUCK)
    assert named(report) == ["scheduler.kv_preemption"]
    assert report.confidence <= 0.6
    assert named(judge(case, 2)) == []


@pytest.mark.parametrize(("waiting", "expected"), [("4", True), ("0", False)])
def test_a_queue_that_only_the_log_reports_is_a_hint_where_requests_waited(waiting: str, expected: bool) -> None:
    made, numbers = serve(CROWD, [Trouble("mystery", 800, 1300, 30)], mapped=False, tier=0)
    unknown = np.full(len(CROWD), UNKNOWN)
    blind = replace(made.requests, queued=unknown, scheduled=unknown)
    lines = [(1000, "vllm.stats", {"waiting": waiting, "running": "8"})]
    case = prepare(logged(replace(made, requests=blind), lines), numbers)
    assert (named(judge(case, STRUCK)) == ["scheduler.queue_saturation"]) == expected
    assert named(judge(case, 2)) == []


def test_sockets_between_ranks_are_a_fallback_only_if_collectives_take_the_time() -> None:
    made, numbers = serve(CROWD, [Trouble("link", 800, 1300, 9)])
    begin = made.steps.launched
    step = np.repeat(np.arange(len(begin), dtype=np.int32), 2)
    table = Collectives(
        group=np.zeros(len(step), np.int32),
        sequence=step.astype(np.int64),
        step=step,
        rank=np.tile(np.array([0, 1], np.int32), len(begin)),
        row=np.full(len(step), -1, np.int32),
        start=np.repeat(begin, 2),
        dur=np.full(len(step), 4 * MS),
        wait=np.zeros(len(step), np.int64),
        late=np.full(len(step), -1, np.int32),
    )
    told = replace(made, collectives=table)
    sockets = logged(told, [(-500, "nccl.net", {"net": "Socket"})])
    verbs = logged(told, [(-500, "nccl.net", {"net": "IB"})])
    assert "comm.fabric_fallback" in named(judge(prepare(sockets, numbers), STRUCK))
    assert "comm.fabric_fallback" not in named(judge(prepare(verbs, numbers), STRUCK))


def test_a_collection_in_a_front_end_of_its_own_delays_delivery_but_no_step() -> None:
    made, numbers = serve(CROWD)
    end = int(made.requests.last_token[STRUCK])
    late = made.requests.client_end.copy()
    late[STRUCK] += 300 * MS
    pauses = made.pauses
    inside = replace(
        pauses,
        start=np.append(pauses.start, end),
        dur=np.append(pauses.dur, 300 * MS),
        thread=np.append(pauses.thread, 1),
        process=[*pauses.process, "host/1"],
        role=[*pauses.role, "frontend"],
        kind=[*pauses.kind, "gc"],
    )
    table = numbers.requests
    row = prepare(made, numbers).expectation(STRUCK, "e2e")
    value = table.value.copy()
    value[row] += 300 * MS
    told = replace(made, pauses=inside, requests=replace(made.requests, client_end=late))
    case = prepare(told, replace(numbers, requests=replace(table, value=value)))
    assert named(judge(case, STRUCK)) == ["host.gc_pause"]
    assert scene(case, STRUCK, "e2e").holds.collection.sum() == 0
    assert named(judge(case, STRUCK + 1)) == []


def _on_device(busy: float) -> Capture:
    """Twenty steps of 10 ms, in each of which the device works for ``busy`` ms while the host computes."""
    rows, count = Rows(), 20
    low: list[int] = []
    for at in range(count):
        begin = at * 10 * MS
        low.append(rows.open("step", Layer.ENGINE, begin))
        rows.leaf("aten::mm", Layer.OPERATOR, begin, 9 * MS)
        rows.close(begin + 10 * MS)
        rows.leaf("gemm", Layer.KERNEL, begin + MS // 2, int(busy * MS), lane=2)
    begin = np.arange(count, dtype=np.int64) * 10 * MS
    work = StepWork(
        np.arange(count, dtype=np.int32),
        np.zeros(count, np.int32),
        begin,
        begin + 10 * MS,
        np.array(low, np.int32),
        np.array([*low[1:], len(rows.start)], np.int32),
    )
    part = Participation(
        np.arange(count, dtype=np.int32),
        np.zeros(count, np.int32),
        np.ones(count, np.int32),
        np.zeros(count, np.int32),
        np.full(count, Role.DECODE, np.uint8),
        np.full(count, Mapping.RECORDED, np.uint8),
        np.ones(count),
    )
    times = {"client_start": begin[:1], "client_end": begin[-1:] + 10 * MS, "last_token": begin[-1:] + 10 * MS}
    made = capture(
        steps_table([Work()] * count, begin + 10_000, begin + 10 * MS),
        work,
        [Rank(0, "host", 1, "worker", rows.tree(), -1)],
        requests=requests_table(1, **times),
        participation=part,
    )
    return replace(made, tier=4)


@pytest.mark.parametrize(("busy", "expected"), [(2.0, True), (9.0, False)])
def test_host_work_is_blamed_where_the_device_stands_still_for_most_of_a_slow_request(
    busy: float, expected: bool
) -> None:
    made = _on_device(busy)
    report = diagnose(made, assess(made), 0, "slo", 50 * MS)
    assert ("host.step_overhead" in named(report)) == expected


def test_resources_of_an_earlier_answer_are_kept_where_the_trees_are_no_longer_at_hand() -> None:
    made = _on_device(2.0)
    numbers = assess(made)
    earlier = diagnose(made, numbers, 0)
    bare = replace(made, ranks=[replace(rank, tree=None) for rank in made.ranks])
    assert {part.part: part.ns for part in earlier.resources}["device_compute"] == 40 * MS
    assert diagnose(bare, numbers, 0, "ttft", earlier=earlier).resources == earlier.resources
    alone = {part.part: part.ns for part in diagnose(bare, numbers, 0, "ttft").resources}
    assert alone["device_compute"] is None


def test_a_caller_who_measured_alone_gets_an_answer_that_says_what_is_missing() -> None:
    made, numbers = serve(CROWD, mapped=False, counters=False, tier=1)
    nothing = np.arange(0)
    unknown = np.full(len(CROWD), UNKNOWN)
    names = ("received", "queued", "scheduled", "first_token", "last_token", "finished")
    alone = replace(
        made,
        steps=take(made.steps, nothing),
        work=take(made.work, nothing),
        pauses=take(made.pauses, nothing),
        ranks=[],
        requests=replace(made.requests, **dict.fromkeys(names, unknown)),
    )
    case = prepare(
        alone, replace(numbers, steps=take(numbers.steps, nothing), candidates=take(numbers.candidates, nothing))
    )
    report = judge(case, STRUCK)
    assert report.verdict == "typical_here"
    assert {part.part for part in report.phases if part.ns} == {"decode", "unexplained"}
    assert report.resources == []
    assert report.tier == 1
    assert "which steps served it" in report.not_seen


def test_a_capture_without_requests_has_no_answers() -> None:
    made = _on_device(2.0)
    empty = np.arange(0)
    bare = replace(made, requests=requests_table(0), participation=take(made.participation, empty))
    assert diagnose_all(bare, assess(bare)) == []


@pytest.mark.parametrize("alike", [100, 300])
def test_memory_that_slow_profiled_steps_tell_of_is_not_less_than_what_nothing_excludes(alike: int) -> None:
    nothing: Any = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules_neighbors, "memory_bandwidth", lambda _: None)
        patch.setattr(rules_anatomy, "memory_bandwidth", lambda _: Clue("host.memory_bandwidth", alike, 0.6, []))
        patch.setattr(rules_neighbors, "not_excluded", lambda _: Clue("host.memory_bandwidth", 200, 0.3, []))
        found = rules.memory_bandwidth(nothing)
    assert found is not None and found.ns == max(alike, 200)
