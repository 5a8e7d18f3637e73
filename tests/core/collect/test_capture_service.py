"""A real service under ``teller capture``: every request is in the bundle with its steps, and the answers rest on it."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from teller_core.answers import slow, why
from teller_core.collect.bundle import events
from teller_core.lab import load
from teller_core.lab.model import tiny_model
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from tests.waiting import until

NEEDED = ("torch", "transformers", "fastapi", "uvicorn", "tokenizers", "safetensors")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.slow
@pytest.mark.service
@pytest.mark.timeout(900)
@pytest.mark.skipif(any(find_spec(name) is None for name in NEEDED), reason="needs the lab extra")
def test_transformers_serve_is_recorded_as_it_is_and_its_requests_are_answered_for(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    target = load.Target(_free_port(), f"./{model.name}")
    serve = [str(Path(sys.executable).with_name("transformers")), "serve", target.model, "--continuous-batching"]
    serve += ["--attn-implementation", "sdpa", "--cb-num-blocks", "256", "--cb-max-batch-tokens", "256"]
    serve += ["--device", "cpu", "--host", "127.0.0.1", "--port", str(target.port)]
    command = [sys.executable, "-m", "teller_core.cli", "capture", "--json", "--window", "3 requests"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    cap = tmp_path / "b" / "cap"
    asks = [load.Ask(f"ask-{number:02}", 0.0, 10 + 7 * number, 6) for number in range(8)]
    with subprocess.Popen(
        [*command, "--to", str(tmp_path / "b"), "--", *serve],
        cwd=model.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            until(lambda: load.healthy(target.port), process)
            rows = load.send(target, asks, 4, 1, lambda: None)
            until(lambda: events(cap, "profile_start"), process)  # the window that the third request asks for
            rows += load.send(target, [ask._replace(rid=f"late-{ask.rid}") for ask in asks], 4, 1, lambda: None)
            until(lambda: len(events(cap, "request.finished")) == 16, process)
        finally:
            process.terminate()
        out, _ = process.communicate(timeout=300)
    assert not any(row["err"] for row in rows)
    report = json.loads(out)
    assert (report["engine"], report["requests"], report["windows"]) == ("transformers", 16, 1)
    assert report["engine_steps"] > 0 and not report["dropped"]
    with contextlib.closing(Store.open(tmp_path / "t.db")) as store:
        capture = import_paths([tmp_path / "b"], store).captures[0]
        assert (capture.requests, capture.mapping) == (16, "recorded")
        page = slow(store, capture=capture.id)
        ids = {row[page.columns.index("engine_id")] for row in page.rows}
        assert {row["rid"] for row in rows} == ids
        assert why(store, "late-ask-07", capture=capture.id).tier >= 3
