"""Do the recipes of ``teller doctor --print`` work? Real vLLM, started with exactly what was printed, one table.

For each door and tier, and for both doors at once, a server is started by a shell that runs the printed lines, gets 40
requests, ends, and what it left is imported by the printed command. ``seen`` requests are those of which ``slow`` knows how
long they took, out of as many as it lists; ``e2e off`` is by how much the caller's own measure is longer, at the median and
the most; ``why`` counts answers by the tier they rest on. The parser of vLLM is asked for every printed argument first.

Run: python tests/studies/doors.py VLLM. VLLM is the command that tests/studies/environment.py made. About three minutes.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from teller_core import answers
from teller_core.cli import main as teller
from teller_core.lab import load
from teller_core.lab.model import tiny_model
from teller_core.lab.serving import VARIABLES
from teller_core.store.store import Store
from tests.studies.engines import free_port, say

REQUESTS, CONNECTIONS = 40, 6
START_S, END_S = 150.0, 30.0
DOORS = (("plugin", "T1"), ("plugin", "T2"), ("flags", "T1"), ("flags", "T2"), ("both", "T2"))
MARK = "# and add to the arguments of vllm:"
OPTIONS = (
    "--dtype",
    "float32",
    "--enforce-eager",
    "--max-model-len",
    "2048",
    "--max-num-seqs",
    "8",
    "--host",
    "127.0.0.1",
)
COLUMNS = (
    "door",
    "tier",
    "answered",
    "seen",
    "steps",
    "tier got",
    "e2e off ms",
    "ttft off ms",
    "why",
    "plugin CPU us/step",
)
PARSE = """
import json, sys
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = make_arg_parser(FlexibleArgumentParser())
for arguments in json.loads(sys.argv[1]):
    parser.parse_args(arguments)
"""


class Recipe(NamedTuple):
    """The printed lines: what the shell runs, the arguments that are added, and what is done afterwards."""

    shell: Sequence[str]
    arguments: Sequence[str]
    then: Sequence[str]
    mentioned: Sequence[str]
    """Other switches of vLLM that the page speaks of."""


def main() -> None:
    """Try every recipe and print the table."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before its time"))  # so that no server outlives it
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vllm", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", choices=[f"{door}-{tier}" for door, tier in DOORS], action="append")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="teller-doors-") as scratch:
        kept = asked.keep or Path(scratch)
        kept.mkdir(parents=True, exist_ok=True)
        model = tiny_model(kept)
        doors = [(door, tier) for door, tier in DOORS if not asked.only or f"{door}-{tier}" in asked.only]
        recipes = [_recipe(door, tier, kept) for door, tier in doors]
        _parsed_by_vllm(asked.vllm, recipes)
        say(" | ".join(COLUMNS))
        for (door, tier), recipe in zip(doors, recipes, strict=True):
            say(" | ".join(_row(door, tier, recipe, kept=kept, model=model, vllm=asked.vllm)))


def printed(*words: str) -> str:
    """What ``teller doctor`` prints for ``words``."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if teller(["doctor", *words]):
            raise SystemExit("teller doctor refused")
    return out.getvalue()


def recipe_of(page: str) -> Recipe:
    """The lines of a page that are to be run."""
    lines = page.splitlines()
    end = lines.index("Then")
    then = [line.strip() for line in lines[end + 1 :]]
    return Recipe(
        [line for line in lines[:end] if line.startswith("export ")],
        shlex.split(lines[lines.index(MARK) + 1]) if MARK in lines else [],
        then[: then.index("")],
        sorted(set(re.findall(r"--(?:en|dis)able-[a-z-]+", page))),
    )


def _recipe(door: str, tier: str, kept: Path) -> Recipe:
    folder = kept / f"{door}-{tier}"
    if door == "both":  # every request and step is told twice, and must be one
        own, other = (
            recipe_of(printed("--print", "vllm", "--door", one, "--tier", tier, "--to", str(folder)))
            for one in ("plugin", "flags")
        )
        return own._replace(shell=[*own.shell, *other.shell], arguments=[*own.arguments, *other.arguments])
    return recipe_of(printed("--print", "vllm", "--door", door, "--tier", tier, "--to", str(folder)))


def _row(door: str, tier: str, recipe: Recipe, *, kept: Path, model: Path, vllm: Path) -> list[str]:
    folder = kept / f"{door}-{tier}"
    with _collecting(folder) if door != "plugin" else contextlib.nullcontext():
        rows = _served(recipe, folder, model, vllm)
    return [door, tier, *_answers(recipe, folder, rows)]


def _parsed_by_vllm(vllm: Path, recipes: Sequence[Recipe]) -> None:
    """Raises SystemExit where vLLM's own parser does not know an argument."""
    words = [
        str(vllm.with_name("python")),
        "-c",
        PARSE,
        json.dumps([[*one.arguments, *one.mentioned] for one in recipes]),
    ]
    done = subprocess.run(
        words, env={**os.environ, **VARIABLES}, capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode:
        raise SystemExit(f"vLLM does not know what was printed: {done.stderr.splitlines()[-1:]}")


def _served(recipe: Recipe, folder: Path, model: Path, vllm: Path) -> list[dict[str, Any]]:
    """What the callers measured of a server that was started with the printed lines."""
    target = load.Target(free_port(), f"./{model.name}")
    making, keeping = recipe.then[0], next(line for line in recipe.then if "> " in line)
    command = shlex.join([str(vllm), "serve", target.model, *OPTIONS, "--port", str(target.port), *recipe.arguments])
    script = "\n".join([making, *recipe.shell, f"exec {command} {keeping[keeping.index('> ') :]}"])
    process = subprocess.Popen(
        ["bash", "-ec", script], cwd=model.parent, env={**os.environ, **VARIABLES}, start_new_session=True
    )
    try:
        _wait_until_up(process, target.port)
        asks = [load.Ask(f"door-{i:03d}", i * 0.1, 20 + (i * 37) % 200, 8 + (i * 13) % 60) for i in range(REQUESTS)]
        return load.send(target, asks, CONNECTIONS, 1, lambda: None)
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _wait_until_up(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_S
    while not load.healthy(port):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("the server did not come up: see its log")
        time.sleep(0.5)


def _answers(recipe: Recipe, folder: Path, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Import as printed, ask of every request, and compare with what its caller measured."""
    words = shlex.split(next(line for line in recipe.then if line.startswith("teller import")))[1:]
    db = folder.parent / f"{folder.name}.db"
    with contextlib.redirect_stdout(io.StringIO()):
        if teller(["--db", str(db), *words]):
            raise SystemExit("teller import refused")
    called = {f"cmpl-{row['rid']}-0": row for row in rows}
    with contextlib.closing(Store.open(db, read_only=True)) as store:
        (capture,) = answers.list_captures(store).captures
        table = answers.slow(store, limit=1000)
        known = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        timed = [row for row in known if row["e2e_ms"] is not None]
        tiers = Counter(f"T{answers.why(store, str(row['request'])).tier}" for row in timed)
    pairs = [(row, called[name]) for row in timed if (name := _outer(str(row["engine_id"]), called))]
    ends = [(said["end_ns"] - said["start_ns"]) / 1e6 - float(row["e2e_ms"] or 0) for row, said in pairs]
    firsts = [
        (said["tok_ns"][0] - said["start_ns"]) / 1e6 - float(row["ttft_ms"] or 0)
        for row, said in pairs
        if said["tok_ns"]
    ]
    answered = sum(row["err"] is None for row in rows)
    why = ", ".join(f"{count} at {tier}" for tier, count in sorted(tiers.items()))
    counts = [f"{answered}/{len(rows)}", f"{len(pairs)}/{len(known)}", str(capture.steps), f"T{capture.tier}"]
    return [*counts, _spread(ends), _spread(firsts), why, _cost(folder)]


def _outer(engine_id: str, called: Mapping[str, object]) -> str:
    """The caller's name for a request that the engine may call with eight digits more."""
    return next((name for name in (engine_id, engine_id.rpartition("-")[0]) if name in called), "")


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f} / {max(values):.1f}" if values else "-"


def _cost(folder: Path) -> str:
    """Processor time of the plugin for each step: in the server's event loop + in the plugin's own thread."""
    rows = [json.loads(line) for path in folder.glob("stats-*.jsonl") for line in path.read_text().splitlines()]
    told = [row for row in rows if row["k"] == "C"]
    if not told:
        return "-"
    last = told[-1]
    return f"{last['cpu_ns'] / last['calls'] / 1e3:.1f} + {last['writer_ns'] / last['calls'] / 1e3:.1f}"


@contextlib.contextmanager
def _collecting(folder: Path) -> Generator[None]:
    """What stands for an OpenTelemetry Collector: every export becomes a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)

    class Handler(BaseHTTPRequestHandler):
        count = 0

        def do_POST(self) -> None:  # the name that http.server calls
            body = self.rfile.read(int(self.headers["Content-Length"]))
            (folder / f"spans-{Handler.count:04d}.pb").write_bytes(body)
            Handler.count += 1
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # as the class above names it
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 4318), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    main()
