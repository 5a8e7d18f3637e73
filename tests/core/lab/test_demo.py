"""One whole episode with a real service: it is recorded completely, the fault moved what it struck, and nothing tells."""

import gzip
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from teller_core.answers import why
from teller_core.collect.bundle import events
from teller_core.lab.demo import run_episode
from teller_core.lab.plan import FAULTS, NONE, REQUESTS
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from teller_core.tell.explain import unsupported

GIVE_AWAY = ("teller_lab", "TELLER_LAB", "sitecustomize", "journal", *(name for name in FAULTS if name != NONE))


def _text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def _check_moved(truth: Any) -> None:
    assert len(truth.struck) >= 3
    assert truth.moved["unstruck"] >= 5
    # Where others want the processors, or one step takes as long as its stall, the unstruck are as slow.
    if os.getloadavg()[0] < 2 * (os.cpu_count() or 1) and truth.moved["slowdown_median"] >= 1.5:
        assert truth.moved["ratio_median"] >= 1.2, truth.moved


def _check_steps(cap: Path, rows: list[dict[str, Any]]) -> None:
    """Of every request: tokens computed in its steps + found in the cache = prompt + output - 1, and its four moments."""
    computed: dict[str, int] = defaultdict(int)
    cached: dict[str, int] = {}
    for step in events(cap, "cb.prepare"):
        for rid, tokens in step.get("tokens", {}).items():
            computed[rid] += tokens
            cached.setdefault(rid, step["computed"][rid])
    for row in rows:
        usage = row["last"]["usage"]
        assert computed[row["rid"]] + cached[row["rid"]] == usage["prompt_tokens"] + usage["completion_tokens"] - 1
    for moment, key in (
        ("request.received", "rid"),
        ("cb.add_request", "rid"),
        ("request.first_token", "rid"),
        ("request.finished", "rid"),
    ):
        assert {event[key] for event in events(cap, moment)} == {row["rid"] for row in rows}, moment


def _check_answers(bundle: Path, database: Path, rows: list[dict[str, Any]]) -> None:
    """The recording answers why about each of its requests: seen in all of its steps, its phases add up, its words are backed."""
    with Store.open(database) as store:
        (capture,) = import_paths([bundle], store).captures
        assert (capture.mapping, capture.tier, capture.requests) == ("recorded", 4, len(rows))
        for row in rows:
            answer = why(store, row["rid"])
            assert sum(part.ns or 0 for part in answer.phases) == row["end_ns"] - row["start_ns"]
            assert answer.coverage.steps == answer.coverage.profiled or row["rid"].startswith("warmup")
            assert not unsupported(answer)


@pytest.mark.service
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_episode_is_recorded_whole_its_fault_moved_what_it_struck_and_the_bundle_does_not_tell(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    told: list[str] = []
    # What a stall takes from a step is time, which is as long on every machine; the other faults take work.
    truth = run_episode(7, "disk_stall", tmp_path, told.append)
    bundle = tmp_path / "bundle"
    rows = [json.loads(line) for line in (bundle / "client.jsonl").read_text().splitlines()]
    assert len([row for row in rows if row["rid"].startswith("req-")]) == REQUESTS
    _check_moved(truth)
    _check_steps(bundle / "cap", rows)
    assert not events(bundle / "cap", "hook_error")
    assert events(bundle / "cap", "profile_stop")[0]["begin"] > max(row["end_ns"] for row in rows)
    files = [path for path in bundle.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == {"bundle", "cap"}
    for path in files:
        text = _text(path)
        assert not [word for word in GIVE_AWAY if word in text], path.name
    assert not [line for line in told if any(word in line for word in GIVE_AWAY)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "truth.json"]
    _check_answers(bundle, tmp_path_factory.mktemp("store") / "t.db", rows)
