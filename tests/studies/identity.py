"""Does every request's arithmetic hold? Real, unmodified engines under the recorder, one table.

For each request: scheduled tokens = prompt - cached - remote + recomputed + drafted and rejected + output - 1, plus what was
scheduled for a request that had ended already. Every term is recorded by itself; where one record were lost, or read wrongly,
the sum would not hold.

Run: python tests/studies/identity.py VLLM [NAME ...]. VLLM is the command that tests/studies/environment.py made. NAME: some
of the servers below, all of them by default; about two minutes each. ``--keep FOLDER`` leaves the bundles there.

vLLM's CPU build turns asynchronous scheduling off whatever is asked for, and transformers batches asynchronously on devices with
streams only. So vLLM's asynchronous scheduler runs on its own besides, two steps ahead of a made-up worker.
"""

import argparse
import contextlib
import http.client
import json
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from teller_core.answers import slow, why
from teller_core.collect.bundle import Service, record
from teller_core.data.report import CaptureReport
from teller_core.lab import load
from teller_core.lab.model import tiny_model
from teller_core.lab.serving import VARIABLES
from teller_core.pipeline import import_paths
from teller_core.slices import causal_slice
from teller_core.store.store import Store
from tests.studies.engines import free_port, nothing, say

REQUESTS = 200
CONNECTIONS = 12
"""More than the eight that a server runs at once: some wait."""
ABORTS = 4
"""Further requests whose caller goes away in the middle."""
STOPPED = 8
"""Further requests that end at a word: the front end sees it after the engine has made the token."""
START_S = 150.0
VLLM = (
    *("--dtype", "float32", "--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "8"),
    *("--host", "127.0.0.1", "--port"),
)
TRANSFORMERS = (
    *("--continuous-batching", "--attn-implementation", "sdpa", "--cb-max-batch-tokens", "256"),
    *("--device", "cpu", "--host", "127.0.0.1", "--port"),
)
NGRAM = json.dumps(
    {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1},
    separators=(",", ":"),
)


class Server(NamedTuple):
    """One configuration: the engine (``ahead``: a scheduler alone, ``options`` its guesses a step) and its options."""

    engine: str
    options: Sequence[str]


ON, OFF = "--enable-", "--no-enable-"
CACHED, CHUNKED = ("prefix-caching", "chunked-prefill")
FEW_BLOCKS = ("--num-gpu-blocks-override", "40", "--block-size", "32", "--max-model-len", "1024")
SERVERS: Mapping[str, Server] = {
    "all off": Server("vllm", (OFF + CACHED, OFF + CHUNKED, "--no-async-scheduling")),
    "cached, chunked": Server(
        "vllm", (ON + CACHED, ON + CHUNKED, "--max-num-batched-tokens", "128", "--no-async-scheduling")
    ),
    "async asked for": Server(
        "vllm", (ON + CACHED, ON + CHUNKED, "--max-num-batched-tokens", "256", "--async-scheduling")
    ),
    "n-gram": Server("vllm", (ON + CACHED, "--no-async-scheduling", "--speculative-config", NGRAM)),
    "preempted": Server("vllm", (ON + CACHED, "--no-async-scheduling", *FEW_BLOCKS)),
    "preempted, n-gram": Server(
        "vllm", (OFF + CACHED, "--no-async-scheduling", *FEW_BLOCKS, "--speculative-config", NGRAM)
    ),
    "scheduler ahead": Server("ahead", ("0",)),
    "scheduler ahead, guesses": Server("ahead", ("3",)),
    "transformers": Server("transformers", ("--cb-num-blocks", "768")),
    "transformers, few blocks": Server("transformers", ("--cb-num-blocks", "40", "--cb-block-size", "32")),
}
COLUMNS = ("server", "answered", "seen", "steps with requests", "mapping", "holds", "unchecked", "answers")


def main() -> None:
    """Run the servers that are asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vllm", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *SERVERS], default=[])
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="teller-identity-") as scratch:
        kept = asked.keep or Path(scratch)
        kept.mkdir(parents=True, exist_ok=True)
        model = tiny_model(kept)
        say(" | ".join(COLUMNS))
        for name in asked.names or SERVERS:
            say(" | ".join(_row(name, kept, model, asked.vllm)))


def _row(name: str, kept: Path, model: Path, vllm: Path) -> list[str]:
    """Serve, load, record, import, ask: one line of the table."""
    folder = kept / name.replace(", ", "-").replace(" ", "-")
    server = SERVERS[name]
    rows = _ahead(server, folder, model, vllm) if server.engine == "ahead" else _served(server, folder, model, vllm)
    if rows:
        load.write(folder / "client.jsonl", rows)
    with contextlib.closing(Store.open(folder.parent / f"{folder.name}.db")) as store:
        report = import_paths([folder], store).captures[0]
        answers = _answers(store, report)
    identity = report.identity
    terms = "" if identity is None else ", ".join(f"{key} {value}" for key, value in identity.terms.items() if value)
    holds = "-" if identity is None else f"{identity.holds}/{identity.checked} ({terms})"
    unchecked = "-" if identity is None else json.dumps(identity.unchecked)
    failed = sum(row["err"] is not None for row in rows)
    sent = f"{len(rows) - failed}/{len(rows)}" if rows else "-"
    steps = f"{report.steps_with_requests}/{report.steps}"
    return [name, sent, f"{report.requests}/{_sent(server)}", steps, report.mapping, holds, unchecked, answers]


def _sent(server: Server) -> int:
    """Requests of all kinds that a server gets."""
    return REQUESTS if server.engine == "ahead" else REQUESTS + ABORTS + STOPPED


def _ahead(server: Server, folder: Path, model: Path, vllm: Path) -> list[dict[str, Any]]:
    """Run the scheduler alone to its end. There are no callers."""
    script = Path(__file__).with_name("scheduler_ahead.py").resolve()
    command = [str(vllm.with_name("python")), str(script), f"./{model.name}", str(REQUESTS), *server.options]
    with record(command, folder, VARIABLES, working_folder=model.parent) as service:
        status = service.process.wait(START_S)
    if status:
        raise SystemExit(f"The scheduler failed: read {folder}/server.log")
    return []


def _served(server: Server, folder: Path, model: Path, vllm: Path) -> list[dict[str, Any]]:
    """What the callers measured of every request of one server."""
    target = load.Target(free_port(), f"./{model.name}")  # relative: no output names a folder of this machine
    own = Path(sys.executable).with_name("transformers")
    command = [str(vllm if server.engine == "vllm" else own), "serve", target.model]
    command += [*(VLLM if server.engine == "vllm" else TRANSFORMERS), str(target.port), *server.options]
    with record(command, folder, VARIABLES, working_folder=model.parent) as service:
        _wait_until_up(service, target.port)
        half = REQUESTS // 2
        rows = load.send(target, _asks("first", half), CONNECTIONS, 1, nothing)
        for k in range(ABORTS):
            _leave_early(target, f"gone-{k:03d}")
        for k in range(STOPPED):
            _stop_at_a_word(target, f"stopped-{k:03d}", k)
        rows += load.send(target, _asks("again", half), CONNECTIONS, 1, nothing)
        time.sleep(0.5)
    return rows


def _asks(prefix: str, many: int) -> list[load.Ask]:
    """Requests of mixed length; the same prompts for every prefix."""
    chance = random.Random(5)
    lengths = [(chance.choice((3, 8, 20, 60, 150, 300)), chance.choice((1, 2, 8, 24, 48))) for _ in range(many)]
    return [load.Ask(f"{prefix}-{i:03d}", 0.0, words, output) for i, (words, output) in enumerate(lengths)]


def _leave_early(target: load.Target, rid: str) -> None:
    """Ask for a long answer and go away after its first line."""
    connection = _asked(target, rid, {"stream": True, "max_tokens": 400, "prompt": "ba be bi bo"})
    connection.getresponse().readline()
    connection.close()


def _stop_at_a_word(target: load.Target, rid: str, number: int) -> None:
    """Ask for an answer that ends at a vowel, and wait for it."""
    body = {"max_tokens": 64, "stop": ["aeiou"[number % 5]], "prompt": f"ba be {number}"}
    connection = _asked(target, rid, body)
    connection.getresponse().read()
    connection.close()


def _asked(target: load.Target, rid: str, body: Mapping[str, object]) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=60.0)
    whole = json.dumps({"model": target.model, "temperature": 0.0, **body})
    connection.request("POST", "/v1/completions", whole, {"Content-Type": "application/json", "X-Request-Id": rid})
    return connection


def _answers(store: Store, report: CaptureReport) -> str:
    """The verdict on the slowest request, and how many lines the slice of its longest step has."""
    page = slow(store, capture=report.id, limit=5)
    at = page.columns.index("request")
    first = str(page.rows[0][at])
    verdict = why(store, first, capture=report.id)
    lines = len(causal_slice(store, f"request {first}", capture=report.id).lines)
    return f"slow {len(page.rows)}, why {verdict.verdict}, slice {lines}"


def _wait_until_up(service: Service, port: int) -> None:
    deadline = time.monotonic() + START_S
    while not load.healthy(port):
        if service.process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"The server did not come up: read {service.folder}/server.log")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
