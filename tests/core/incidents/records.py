"""What happened, as recorders write it: callers, the recorder inside the processes, counters from outside, spans, proxies."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.core.incidents.world import MS, Step, World, ns

FRONT, ENGINE, WORKER = 31, 77, 90
"""Process ids; the worker of rank n is WORKER + n, the engine of replica n ENGINE + n."""
TICK = 100 * MS
PAUSES = ("gc", "frozen", "lag")


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def client(world: World, folder: Path) -> None:
    """client.jsonl: what the callers measured."""
    rows: list[dict[str, Any]] = []
    for i, ask in enumerate(world.asks):
        usage = {"prompt_tokens": ask.prompt, "completion_tokens": ask.output, "total_tokens": ask.prompt + ask.output}
        if ask.cached:
            usage |= {"prompt_tokens_details": {"cached_tokens": ask.cached}}
        lost = ask.lost or not world.arrived[i]
        rows.append(
            {
                "rid": world.name(i),
                "start_ns": world.sent(i),
                "end_ns": world.ended(i),
                "tok_ns": [] if lost else world.arrived[i],
                "last": None if lost else {"id": f"cmpl-{world.name(i)}", "usage": usage},
                "err": "TimeoutError: " if lost else None,
            }
        )
    write_lines(folder / "client.jsonl", rows)


def host(world: World, folder: Path) -> None:
    """host-PID.jsonl of the front end, of each engine and of each rank's worker."""
    write_lines(folder / f"host-{FRONT}.jsonl", sorted(_front(world), key=lambda row: row["t"]))
    for engine in range(world.service.engines):
        steps = [step for step in world.steps if step.engine == engine]
        pid = ENGINE + engine
        write_lines(folder / f"host-{pid}.jsonl", sorted(_engine(world, steps, pid), key=lambda row: row["t"]))
        for rank in range(world.service.ranks):
            pid = WORKER + 10 * engine + rank
            write_lines(
                folder / f"host-{pid}.jsonl", sorted(_worker(world, steps, pid, rank), key=lambda row: row["t"])
            )


def _process(pid: int, argv: str) -> dict[str, Any]:
    begun = ns(-20_000)
    anchor = [begun, 4_904_011_887_245, 4_904_011_888_085]
    return {"ph": "P", "t": begun, "tid": pid, "name": "process", "argv": [argv], "ppid": 1, "exe": "python3",
            "py": "3.11.7", "anchor": anchor}  # fmt: skip


def _front(world: World) -> list[dict[str, Any]]:
    rows = [_process(FRONT, "vllm")]
    same: dict[str, Any] = {"ph": "I", "tid": FRONT}
    for i, ask in enumerate(world.asks):
        name, front = world.engine_id(i), f"cmpl-{world.name(i)}"
        rows.append(same | {"t": world.received[i], "name": "request.arrived", "rid": front})
        rows.append(
            same
            | {"t": world.queued[i], "name": "request.added", "rid": name, "ext": f"{front}-0", "prompt": ask.prompt}
            | {"front": front, "at": world.received[i], "tokenized": world.queued[i] - 200_000}
        )
        if world.made[i]:
            rows.append(same | {"t": world.left(i, 0), "name": "request.first_token", "rid": name})
            told: dict[str, Any] = {"name": "request.finished", "rid": name, "reason": "length", "tokens": ask.output}
            rows.append(same | {"t": world.left(i, -1) + 30_000, "cached": ask.cached} | told)
    rows += [
        {"ph": "L", "t": high, "tid": FRONT, "name": "loop_lag", "lag": high - low - 5 * MS}
        for low, high in world.blocked
        if high - low > 30 * MS
    ]
    return rows + _paused(world.steps, FRONT, "front")


def _engine(world: World, steps: Sequence[Step], pid: int) -> list[dict[str, Any]]:
    rows = [_process(pid, "EngineCore")]
    done: dict[int, int] = {}
    back: set[int] = set()
    for number, step in enumerate(steps):
        names = {world.engine_id(i): n for i, n, *_ in step.served}
        rows.append(
            {"ph": "X", "t": step.begin - 200_000, "tid": pid, "name": "vllm.schedule", "dur": 150_000, "n": number}
            | {"tokens": names, "prompt": {world.engine_id(i): world.asks[i].prompt for i, *_ in step.served if not done.get(i)}}
            | {"computed": {world.engine_id(i): done.get(i, world.asks[i].cached) for i, *_ in step.served}}
            | {"cached": {world.engine_id(i): world.asks[i].cached for i, *_ in step.served if i not in done}}
            | {"preempted": [world.engine_id(i) for i in step.evicted]}
            | {"resumed": [world.engine_id(i) for i, *_ in step.served if i in back], "finished": [], "waiting": step.waiting}
            | {"running": len(step.served)}
        )  # fmt: skip
        back = (back - {i for i, *_ in step.served}) | set(step.evicted)
        for i in step.evicted:
            done[i] = 0
        for i, n, *_ in step.served:
            done[i] = done.get(i, world.asks[i].cached) + n
    return rows + _paused(steps, pid, "engine")


def _worker(world: World, steps: Sequence[Step], pid: int, rank: int) -> list[dict[str, Any]]:
    rows = [_process(pid, f"Worker_TP{rank}")]
    sequence = 0
    for number, step in enumerate(steps):
        names = {world.engine_id(i): n for i, n, *_ in step.served}
        begin, stop = step.begin + 40_000 + 5_000 * rank, step.stop - 60_000 + 3_000 * rank
        rows.append(
            {"ph": "X", "t": begin, "tid": pid, "name": "vllm.execute_model", "dur": stop - begin, "tokens": names}
            | {"n": number}
        )
        if world.service.ranks > 1:
            for start, dur in collectives(world, step, rank):
                rows.append(
                    {"ph": "K", "t": start, "tid": pid, "name": "all_reduce", "dur": dur, "group": "0", "n": sequence}
                    | {"rank": rank, "size": world.service.ranks, "elems": 4096, "dtype": "bfloat16"}
                )
                sequence += 1
    return rows + _paused(steps, pid, "worker")


COLLECTIVES = 4
"""In a step, on every rank, at even distances."""


def collectives(world: World, step: Step, rank: int) -> list[tuple[int, int]]:
    """(start, dur) ns of the collectives of a rank in a step. A rank that is late makes the others wait; a slow link all."""
    lag = {r: sum(ns for trouble, ns in step.extra if trouble.kind == "late" and trouble.rank == r) for r in range(9)}
    moving = sum(ns for trouble, ns in step.extra if trouble.kind in ("link", "wire")) // COLLECTIVES
    turning = [(trouble, ns) for trouble, ns in step.extra if trouble.kind == "experts"]
    out: list[tuple[int, int]] = []
    now = step.begin + 60_000
    work = (step.base - 200_000) // COLLECTIVES
    for n in range(COLLECTIVES):
        worst = max(lag.values()) // COLLECTIVES
        mine = lag[rank] // COLLECTIVES
        if turning:  # the expert that everybody asks for lives elsewhere in each layer
            hot = (step.begin // MS + n) % world.service.ranks
            worst = turning[0][1] // COLLECTIVES
            mine = worst if rank == hot else 0
        compute = int(work * 0.85)
        transfer = work - compute + moving
        arrive = now + compute + mine
        last = now + compute + worst
        out.append((arrive, last + transfer - arrive))
        now = last + transfer
    return out


def _paused(steps: Sequence[Step], pid: int, place: str) -> list[dict[str, Any]]:
    """Collections and late threads, where the troubles of the steps say that this process had them."""
    rows: list[dict[str, Any]] = []
    for step in steps:
        for trouble, extra in step.extra:
            where = trouble.name or "engine"
            if trouble.kind not in PAUSES or where != place:
                continue
            if trouble.kind == "gc":
                rows.append({"ph": "G", "t": step.begin + step.base // 2, "tid": pid, "name": "gc", "dur": extra,
                             "gen": 2, "collected": 4})  # fmt: skip
            else:
                rows.append({"ph": "L", "t": step.begin + step.base // 2 + extra, "tid": pid + 1000,
                             "name": "thread_lag", "lag": extra})  # fmt: skip
    return rows


GROWS = {"starved": "run_queue_wait_ns", "storage": "pressure_io_some_us", "writes": "pressure_io_some_us"}
IDLE = ("starved", "storage", "writes", "asleep", "frozen", "late", "link", "wire")
"""Troubles during which a process uses no processor."""


def samples(world: World, folder: Path) -> None:
    """samples.jsonl: counters of the engine, the workers and the machine."""
    rows: list[dict[str, Any]] = []
    begin, end = ns(-500), world.last + 500 * MS
    working = [(step.begin, step.stop, step) for step in world.steps]
    run, wait, pressure, written, cpu = 0.0, 0.0, 0.0, 0.0, 0.0
    for tick in range(begin, end, TICK):
        busy = sum(max(0, min(stop, tick) - max(start, tick - TICK)) for start, stop, _ in working)
        run += 0.9 * busy
        wait += 0.01 * TICK
        pressure += 0.002 * TICK / 1000
        written += 10_000
        for start, stop, step in working:
            share = max(0, min(stop, tick) - max(start, tick - TICK)) / max(stop - start, 1)
            for trouble, extra in step.extra if share else []:
                run -= 0.9 * extra * share if trouble.kind in IDLE else 0
                wait += extra * share if trouble.kind == "starved" else 0
                cpu += extra * share / 1000 if trouble.kind == "starved" else 0
                pressure += extra * share / 1000 if trouble.kind in ("storage", "writes") else 0
                written += 40e6 * extra * share / 1e9 if trouble.kind == "writes" else 0
        for pid in (ENGINE, WORKER):
            for name, value in (("run_ns", run), ("run_queue_wait_ns", wait)):
                rows += [_sample(tick, pid, name, value), _sample(tick, pid, name, value) | {"tid": pid}]
            rows.append(_sample(tick, pid, "write_bytes", written))
        rows.append(_sample(tick, 0, "pressure_io_some_us", pressure))
        rows.append(_sample(tick, 0, "pressure_cpu_some_us", cpu))
    write_lines(folder / "samples.jsonl", rows)


def _sample(time: int, pid: int, name: str, value: float) -> dict[str, Any]:
    return {"t": time, "pid": pid, "name": name, "value": max(round(value), 0)}


def sglang_spans(world: World, folder: Path) -> None:
    """otel.jsonl: what SGLang exports of each request with --enable-trace."""
    spans: list[dict[str, Any]] = []
    for i, ask in enumerate(world.asks):
        if not world.made[i]:
            continue
        trace, root = f"{i + 1:032x}", f"{16 * i + 1:016x}"
        begin, end = world.received[i], world.made[i][-1] + 200_000
        about = {
            "rid": world.name(i),
            "gen_ai.usage.prompt_tokens": ask.prompt,
            "gen_ai.usage.completion_tokens": ask.output,
        }
        about |= {"gen_ai.usage.cached_tokens": ask.cached}
        spans.append(_span((trace, root, ""), f" Req {world.name(i)}", begin, end, about))
        slices = [
            ("tokenize", begin, world.queued[i] - 300_000),
            ("dispatch", world.queued[i] - 300_000, world.queued[i] - 100_000),
            ("request_process", world.queued[i], world.queued[i] + 20_000),
            ("prefill_waiting", world.queued[i] + 20_000, max(world.scheduled[i], world.queued[i] + 20_000)),
            ("prefill_forward", max(world.scheduled[i], world.queued[i] + 20_000), world.made[i][0]),
        ]
        spans += [_span((trace, f"{16 * i + 2 + n:016x}", root), *one, {}) for n, one in enumerate(slices)]
    scope = {"scope": {"name": "sglang server"}, "spans": spans}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "sglang"}}]}
    write_lines(folder / "otel.jsonl", [{"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}])


def transfer_spans(world: World, folder: Path) -> None:
    """otel.jsonl of a gateway before an engine for prompts and one for answers, which gets the prompt's KV for ``hold`` ms."""
    batches: dict[str, list[dict[str, Any]]] = {"router": [], "prefill": [], "decode": []}
    for i, ask in enumerate(world.asks):
        trace, root = f"{i + 1:032x}", f"{16 * i + 1:016x}"
        begin, end = world.sent(i), world.ended(i)
        done = world.received[i] + round((40 + 0.05 * ask.prompt) * MS)
        http = {"http.request.method": "POST", "url.path": "/v1/chat/completions"}
        batches["router"].append(_span((trace, root, ""), "POST /v1/chat/completions", begin, end, http) | {"kind": 2})
        first = {"gen_ai.request.id": f"chatcmpl-{world.name(i)}", "gen_ai.usage.prompt_tokens": ask.prompt}
        first["gen_ai.usage.completion_tokens"] = 1
        first |= _latencies(done - world.received[i], 400_000, done - world.received[i] - 400_000)
        batches["prefill"].append(
            _span((trace, f"{16 * i + 2:016x}", root), "llm_request", world.received[i], done, first)
        )
        begun = done + round(ask.hold * MS)
        later = {"gen_ai.request.id": f"chatcmpl-{world.name(i)}", "gen_ai.usage.prompt_tokens": ask.prompt}
        later |= {
            "gen_ai.usage.completion_tokens": ask.output,
        }
        later |= _latencies(end - done - 2 * MS, begun - done - MS, 9 * MS)
        batches["decode"].append(_span((trace, f"{16 * i + 3:016x}", root), "llm_request", done + MS, end - MS, later))
    rows = [
        {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": f"pd-{name}"}}]},
         "scopeSpans": [{"scope": {"name": "router" if name == "router" else "vllm.tracing.otel"}, "spans": spans}]}
        for name, spans in batches.items()
    ]  # fmt: skip
    write_lines(folder / "otel.jsonl", [{"resourceSpans": rows}])


def _latencies(whole: int, queue: int, prefill: int) -> dict[str, float]:
    rest = max(whole - queue - prefill, 0)
    told = {"time_in_queue": queue, "time_in_model_prefill": prefill, "time_in_model_decode": rest}
    told |= {"time_in_model_inference": prefill + rest, "time_to_first_token": queue + prefill, "e2e": whole}
    return {f"gen_ai.latency.{name}": ns / 1e9 for name, ns in told.items()}


def _span(ids: tuple[str, str, str], name: str, begin: int, end: int, about: dict[str, Any]) -> dict[str, Any]:
    """``ids``: of the trace, of the span, of the one above it."""
    trace, own, parent = ids
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue"}
    attributes = [
        {"key": key, "value": {kinds[type(value)]: str(value) if isinstance(value, int) else value}}
        for key, value in about.items()
    ]
    return {"traceId": trace, "spanId": own, "parentSpanId": parent, "name": name, "kind": 1,
            "startTimeUnixNano": str(begin), "endTimeUnixNano": str(end), "attributes": attributes}  # fmt: skip


def nginx(world: World, folder: Path) -> None:
    """access.log of a gateway that measures what it adds: nginx with its times and the request's id."""
    rows: list[tuple[int, str]] = []
    for i in range(len(world.asks)):
        begin, end = world.sent(i), world.ended(i)
        inner = (end - world.received[i]) / 1e9
        at = datetime.fromtimestamp(end / 1e9, UTC)
        rows.append(
            (end, json.dumps({"time_iso8601": f"{at:%Y-%m-%dT%H:%M:%S+00:00}", "msec": f"{end / 1e9:.3f}",
              "request": "POST /v1/completions HTTP/1.1", "status": "200", "request_time": f"{(end - begin) / 1e9:.3f}",
              "upstream_response_time": f"{inner:.3f}", "request_id": world.name(i)}))
        )  # fmt: skip
    (folder / "access.log").write_text("".join(f"{line}\n" for _, line in sorted(rows)), "utf-8")
