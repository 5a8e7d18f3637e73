"""What happened, in the words of engines: lines of vLLM, SGLang, TGI and llama.cpp, of the kernel, and pages of /metrics."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.core.incidents.records import ENGINE, FRONT
from tests.core.incidents.world import MS, World, ns

Line = tuple[int, str]
S = 1_000_000_000


def at(time: int) -> datetime:
    return datetime.fromtimestamp(time / 1e9, UTC)


def write(path: Path, lines: Sequence[Line]) -> None:
    path.write_text("".join(f"{text}\n" for _, text in sorted(lines, key=lambda line: line[0])), "utf-8")


def extra_lines(told: Sequence[Mapping[str, Any]], say: Callable[[int, Mapping[str, Any]], Line]) -> list[Line]:
    """The case's own lines: ``at`` ms, ``says``; ``every`` and ``until`` repeat them."""
    lines: list[Line] = []
    for line in told:
        now, every = float(line["at"]), float(line.get("every", 0))
        while now <= float(line.get("until", line["at"])):
            lines.append(say(ns(now), line))
            now += every or 1e9
    return lines


# vLLM


def _vllm_said(world: World, told: Mapping[str, Any]) -> list[tuple[int, str, str, str]]:
    """(time, process, file, message) of all that it says."""
    said: list[tuple[int, str, str, str]] = []
    for i, ask in enumerate(world.asks):
        adapter = f"LoRARequest(lora_name='{ask.adapter}', lora_int_id=1)" if ask.adapter else "None"
        guided = f"StructuredOutputsParams(json={{'title': '{ask.schema}'}})" if ask.schema else "None"
        words = f"SamplingParams(n=1, max_tokens={ask.output}, structured_outputs={guided})"
        if told.get("requests", True):
            name = f"cmpl-{world.name(i)}-0"
            received = f"Received request {name}: params: {words}, lora_request: {adapter}."
            said.append((world.received[i], "APIServer", "request_logger.py:65", received))
            said.append((world.queued[i], "APIServer", "async_llm.py:578", f"Added request {world.engine_id(i)}."))
    if told.get("iterations", True):
        numbers: dict[int, int] = {}
        for step in world.steps:
            number = numbers[step.engine] = numbers.get(step.engine, -1) + 1
            words = (
                f"Engine {step.engine:03d}: Iteration({number}): {step.prefills} context requests, {step.context} context"
                f" tokens, {step.generation} generation requests, {step.generation * world.service.accept} generation"
                f" tokens, iteration elapsed time: {(step.stop - step.begin) / 1e6:.2f} ms, GPU KV cache usage:"
                f" {_kv(world, step.used):.1f}%"
            )
            said.append((step.stop + 100_000, "APIServer", "loggers.py:199", words))
    if (every := told.get("stats", 0)) > 0:
        said += _vllm_stats(world, every, told)
    return said


def _kv(world: World, used: int) -> float:
    return min(100.0 * used / (world.service.room or 100_000), 100.0)


def _vllm_stats(world: World, every: float, told: Mapping[str, Any]) -> list[tuple[int, str, str, str]]:
    said: list[tuple[int, str, str, str]] = []
    period = round(every * S)
    for engine in range(world.service.engines):
        mine = [step for step in world.steps if step.engine == engine]
        for end in range(ns(0) + period, world.last + period, period):
            steps = [step for step in mine if end - period <= step.begin < end]
            now = next((step for step in reversed(mine) if step.begin < end <= step.stop + 50 * MS), None)
            waiting = now.waiting if now else sum(
                world.queued[i] <= end and (world.scheduled[i] or end + 1) > end and ask.engine == engine
                for i, ask in enumerate(world.asks)
            )  # fmt: skip
            prompt = sum(step.context for step in steps) / every
            output = sum(step.generation for step in steps) * world.service.accept / every
            old = told.get("v0")
            words = f"Avg prompt throughput: {prompt:.1f} tokens/s, Avg generation throughput: {output:.1f} tokens/s, "
            words += f"Running: {len(now.served) if now else 0} reqs, "
            words += (
                f"Swapped: {told.get('swapped', 0)} reqs, Pending: {waiting} reqs, "
                if old
                else f"Waiting: {waiting} reqs, "
            )
            words += f"GPU KV cache usage: {_kv(world, now.used) if now else 0.0:.1f}%"
            words += ", CPU KV cache usage: 0.0%." if old else ", Prefix cache hit rate: 0.0%"
            said.append((end, "APIServer", "loggers.py:248", words if old else f"Engine {engine:03d}: {words}"))
    return said


def vllm_text(world: World, folder: Path, told: Mapping[str, Any]) -> None:
    """server.log: as it stands on a terminal, to the second."""

    def line(time: int, process: str, file: str, words: str, level: str = "INFO") -> Line:
        pid = FRONT if process == "APIServer" else ENGINE
        return time, f"({process} pid={pid}) {level} {at(time):%m-%d %H:%M:%S} [{file}] {words}"

    lines = [line(*said) for said in _vllm_said(world, told)]
    lines += extra_lines(
        told.get("lines", []),
        lambda time, one: (time, one["says"].format(stamp=f"{at(time):%m-%d %H:%M:%S}", glog=f"{at(time):%m%d %H:%M:%S.%f}"))
        if one.get("bare")
        else line(time, one.get("process", "EngineCore"), one.get("file", "core.py:1"), one["says"], one.get("level", "INFO")),
    )  # fmt: skip
    write(folder / "server.log", lines)


def vllm_json(world: World, folder: Path, told: Mapping[str, Any]) -> None:
    """service.jsonl: the same by a logging configuration that writes JSON, with fractions of a second."""

    def line(time: int, process: str, file: str, words: str, level: str = "INFO") -> Line:
        name, _, number = file.partition(":")
        row = {"created": time / 1e9, "process": FRONT if process == "APIServer" else ENGINE, "levelname": level}
        row |= {"processName": "MainProcess", "threadName": "MainThread", "name": "vllm", "filename": name}
        return time, json.dumps(row | {"lineno": int(number), "message": words, "vllm_process_name": process})

    lines = [line(*said) for said in _vllm_said(world, told)]
    lines += extra_lines(
        told.get("lines", []),
        lambda time, one: line(
            time, one.get("process", "EngineCore"), one.get("file", "core.py:1"), one["says"], one.get("level", "INFO")
        ),
    )
    write(folder / "service.jsonl", lines)


# SGLang


def sglang(world: World, folder: Path, told: Mapping[str, Any]) -> None:
    """server.log: batches, requests and their times."""

    def line(time: int, words: str, rank: str = "") -> Line:
        return time, f"[{at(time):%Y-%m-%d %H:%M:%S}{rank}] {words}"

    lines: list[Line] = []
    graphs = told.get("graphs", 10**9)
    for engine in range(world.service.engines):
        rank = f" DP{engine} TP0" if world.service.engines > 1 else ""
        decodes = 0
        for step in [step for step in world.steps if step.engine == engine]:
            if step.prefills:
                cached = sum(world.asks[i].cached for i, _, prefill, _ in step.served if prefill)
                words = (
                    f"Prefill batch, #new-seq: {step.prefills}, #new-token: {step.context}, #cached-token: {cached}, "
                )
                words += f"token usage: {_kv(world, step.used) / 100:.2f}, #running-req: {step.generation}, "
                lines.append(line(step.begin, f"{words}#queue-req: {step.waiting}, ", rank))
            decodes += bool(step.generation)
            if step.generation and decodes % told.get("interval", 40) == 0:
                words = f"Decode batch, #running-req: {step.generation}, #token: {step.used}, "
                words += f"token usage: {_kv(world, step.used) / 100:.2f}, "
                if "accept" in told:
                    words += f"accept len: {told['accept']:.2f}, accept rate: {told.get('rate', 0.1):.2f}, "
                words += f"cuda graph: {step.generation <= graphs}, "
                rate = step.generation * world.service.accept / (step.stop - step.begin) * 1e9
                lines.append(
                    line(step.stop, f"{words}gen throughput (token/s): {rate:.2f}, #queue-req: {step.waiting}, ", rank)
                )
            if step.evicted and told.get("retracts", True):
                words = f"KV cache pool is full. Retract requests. #retracted_reqs: {len(step.evicted)}, "
                lines.append(line(step.begin, f"{words}#new_token_ratio: 0.5938 -> 0.7124", rank))
    if told.get("requests", True):
        lines += [line(*said) for i in range(len(world.asks)) if world.made[i] for said in _sglang_request(world, i)]
    lines += extra_lines(told.get("lines", []), lambda time, one: line(time, one["says"], one.get("rank", "")))
    write(folder / "server.log", lines)


def _sglang_request(world: World, i: int) -> list[Line]:
    ask, name, end = world.asks[i], world.name(i), world.made[i][-1] + 200_000
    params = f"'max_new_tokens': {ask.output}"
    params += f", 'json_schema': '{{\"title\": \"{ask.schema}\"}}'" if ask.schema else ""
    adapter = f", lora_path='{ask.adapter}'" if ask.adapter else ""
    received = f"Receive: obj=GenerateReqInput(rid='{name}', text='...', sampling_params={{{params}}}{adapter})"
    meta = f"'id': '{name}', 'prompt_tokens': {ask.prompt}, 'completion_tokens': {ask.output}, "
    meta += f"'cached_tokens': {ask.cached}, 'e2e_latency': {(end - world.received[i]) / 1e9:.4f}"
    finished = f"Finish: obj=GenerateReqInput(rid='{name}', text='...'), out={{'text': '...', 'meta_info': {{{meta}}}}}"
    times = f"Req Time Stats(rid={name}, input len={ask.prompt}, output len={ask.output}, type=unified): "
    times += f"queue_duration={(world.scheduled[i] - world.queued[i]) / 1e6:.2f}ms, "
    times += f"forward_duration={(end - world.scheduled[i]) / 1e6:.2f}ms, start_time={world.received[i] / 1e9:.3f}"
    return [(world.received[i], received), (end, finished), (end, times)]


# others


def tgi(world: World, folder: Path, told: Mapping[str, Any]) -> None:
    """server.log of TGI's router."""
    lines: list[Line] = []
    for i, ask in enumerate(world.asks):
        end = world.made[i][-1] + 200_000
        run = (end - world.scheduled[i]) / 1e6
        words = f'generate{{total_time="{(end - world.received[i]) / 1e6:.6f}ms" '
        words += f'validation_time="{(world.queued[i] - world.received[i]) / 1e6:.6f}ms" '
        words += f'queue_time="{(world.scheduled[i] - world.queued[i]) / 1e6:.6f}ms" inference_time="{run:.6f}ms" '
        words += f'time_per_token="{run / ask.output:.6f}ms" seed="None"}}: text_generation_router::server: Success'
        lines.append((end, f"{at(end):%Y-%m-%dT%H:%M:%S.%f}Z  INFO {words}"))
    write(folder / "server.log", lines)


def llamacpp(world: World, folder: Path, told: Mapping[str, Any]) -> None:
    """server.log of llama.cpp's server, with the time since its start."""
    lines: list[Line] = []
    zero = ns(-1000)

    def line(time: int, words: str) -> Line:
        since = (time - zero) // 1000
        stamp = f"{since // 60_000_000}.{since // 1_000_000 % 60:02d}.{since // 1000 % 1000:03d}.{since % 1000:03d} I "
        return time, stamp + words

    for i, ask in enumerate(world.asks):
        begin, first, end = world.scheduled[i], world.made[i][0], world.made[i][-1]
        new, prompt, rest = ask.prompt - ask.cached, (first - begin) / 1e6, (end - first) / 1e6
        update = f"slot update_slots: id  0 | task {i} | "
        lines.append(line(begin, f"slot launch_slot_: id  0 | task {i} | processing task"))
        words = f"new prompt, n_ctx_slot = 8192, n_keep = 0, n_prompt_tokens = {ask.prompt}"
        lines.append(line(begin + 1000, update + words))
        if told.get("forced") and not ask.cached:
            words = "forcing full prompt re-processing due to lack of cache data (likely due to SWA)"
            lines.append(line(begin + 2000, update + words))
        lines.append(line(end, f"slot print_timing: id  0 | task {i} | "))
        lines.append(line(end + 1, f"prompt eval time = {_timing(prompt, new)}"))
        lines.append(line(end + 2, f"       eval time = {_timing(rest, ask.output)}"))
        lines.append(line(end + 3, f"      total time = {prompt + rest:10.2f} ms / {new + ask.output:5d} tokens"))
        words = f"stop processing: n_past = {ask.prompt + ask.output}, truncated = 0"
        lines.append(line(end + 4, f"slot      release: id  0 | task {i} | {words}"))
    write(folder / "server.log", lines)


def _timing(ms: float, tokens: int) -> str:
    each = f"({ms / tokens:8.2f} ms per token, {1000 * tokens / ms:8.2f} tokens per second)"
    return f"{ms:10.2f} ms / {tokens:5d} tokens {each}"


def kernel(world: World, folder: Path, told: Mapping[str, Any]) -> None:
    """kernel.log: as journalctl -k shows it."""
    lines = extra_lines(
        told.get("lines", []),
        lambda time, one: (time, f"{at(time):%Y-%m-%dT%H:%M:%S.%f}+00:00 node7 kernel: {one['says']}"),
    )
    write(folder / "kernel.log", lines)


def pages(world: World, folder: Path, told: Mapping[str, Any]) -> None:
    """A page of /metrics every ``every`` seconds, dated by its name: what vLLM, or SGLang, and a device's exporter count."""
    every = round(told.get("every", 1) * S)
    first = (ns(0) // S) * S
    evictions = 0
    for now in range(first, world.last + every, every):
        steps = [step for step in world.steps if step.begin <= now]
        lines: list[str] = []
        for engine in range(world.service.engines):
            mine = [step for step in steps if step.engine == engine]
            last = mine[-1] if mine and mine[-1].stop + 50 * MS >= now else None
            evictions = sum(len(step.evicted) for step in mine)
            label = f'{{engine="{engine}",model_name="m"}}'
            running, used = (len(last.served), last.used) if last else (0, 0)
            waiting = sum(
                world.queued[i] <= now and (world.scheduled[i] or now + 1) > now and ask.engine == engine and world.ended(i) > now
                for i, ask in enumerate(world.asks)
            )  # fmt: skip
            lines += ["# TYPE vllm:num_requests_running gauge", f"vllm:num_requests_running{label} {running}"]
            lines += ["# TYPE vllm:num_requests_waiting gauge", f"vllm:num_requests_waiting{label} {waiting}"]
            lines += [f"vllm:kv_cache_usage_perc{label} {_kv(world, used) / 100:.4f}"]
            lines += [f"vllm:num_preemptions_total{label} {evictions}"]
            new = [world.asks[i] for i in range(len(world.asks)) if world.scheduled[i] and world.scheduled[i] <= now]
            lines += [f"vllm:prefix_cache_queries_total{label} {sum(ask.prompt for ask in new)}"]
            lines += [f"vllm:prefix_cache_hits_total{label} {sum(ask.cached for ask in new)}"]
        for series in told.get("series", []):
            inside = ns(float(series.get("begin", 0))) <= now < ns(float(series.get("end", 1e9)))
            lines.append(f"{series['name']} {series['value'] if inside else series.get('else', 0)}")
        (folder / f"metrics-{now // S}.prom").write_text("\n".join(lines) + "\n", "utf-8")


LOGS: Mapping[str, Callable[[World, Path, Mapping[str, Any]], None]] = {
    "vllm_text": vllm_text,
    "vllm_json": vllm_json,
    "sglang": sglang,
    "tgi": tgi,
    "llamacpp": llamacpp,
    "kernel": kernel,
    "metrics": pages,
}
