"""What another limit would do, foretold from windows of a made-up engine under one of two."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.lab.blocks import HEALTHY, Window
from teller_core.lab.counterfactual import AFTER, BEFORE, Asked, Ran, Rerun
from teller_core.lab.lifting import limited
from teller_core.lab.lifting.limited import Foretold, foretold
from teller_core.lab.serving import Setup
from tests.core.judge.reschedule.served import MS, ZERO, Ask, Engine, capture, served

LONG, ROUNDS, REQUESTS = 6_000 * MS, 4, 16


def told(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: Asked,
    engines: tuple[Engine, Engine],
    *,
    rounds: int = ROUNDS,
    several: int = 1,
) -> list[Foretold]:
    """What is foretold of rounds of the same requests to an engine as it is BEFORE and AFTER, or to ``several`` in turns."""
    chance = random.Random(3)
    windows: list[Ran] = []
    asks: list[Ask] = []
    for turn in range(rounds):
        own = [
            Ask(chance.randrange(900) * MS, chance.randrange(60, 160), chance.randrange(8, 30)) for _ in range(REQUESTS)
        ]
        for arm in chance.sample((BEFORE, AFTER), 2):
            begin = len(windows) * LONG
            names = [f"{len(asks) + at:08x}" for at in range(REQUESTS)]
            asks += [replace(ask, at=begin + ask.at) for ask in own]
            window = Window(turn, HEALTHY, False, ZERO + begin, ZERO + begin + LONG - 1, names, [], 0, {}, [])
            windows.append(Ran(0, arm, "bundle-1", window))

    def noise(_: int) -> int:
        return int(chance.lognormvariate(0.0, 0.05) * MS)

    happened = served(asks, engines[0], noise, lambda now: engines[windows[min(now // LONG, len(windows) - 1)].arm])
    whole = capture(happened)
    engine = np.arange(len(whole.steps.engine), dtype=np.int32) % several
    whole = replace(whole, steps=replace(whole.steps, engine=engine))
    names = [name for one in windows for name in one.window.requests]
    table = replace(
        whole.requests, client_id=names, client_start=whole.requests.queued, client_end=whole.requests.finished
    )
    rows = [
        {
            "rid": name,
            "start_ns": ZERO + asks[at].at,
            "end_ns": happened.done[at],
            "tok_ns": [happened.first[at]],
            "err": None,
        }
        for at, name in enumerate(names)
    ]
    (folder / "bundle-1").mkdir()
    (folder / "bundle-1" / "client.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(limited, "read_bundle", lambda bundle: replace(whole, requests=table))
    return foretold(Rerun(asked, windows, {}, []), folder)


@pytest.mark.parametrize(
    ("asked", "engines"),
    [
        (Asked(Setup(), "seats", 2), (Engine(seats=8), Engine(seats=2))),
        (Asked(Setup(), "chunk", 24), (Engine(seats=8), Engine(seats=8, tokens=24))),
    ],
    ids=["seats", "chunk"],
)
def test_either_limit_is_foretold_from_windows_under_the_other_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Asked, engines: tuple[Engine, Engine]
) -> None:
    found = told(tmp_path, monkeypatch, asked, engines)
    assert [(each.arm, each.latency) for each in found] == [
        (arm, name) for arm in (BEFORE, AFTER) for name in ("ttft", "e2e")
    ]
    larger = [each for each in found if asked.what == "chunk" and each.arm == AFTER]
    assert {each.silent for each in larger} <= {limited.LARGER}
    for each in [each for each in found if each not in larger]:
        assert not each.silent
        assert each.sums.size == ROUNDS * REQUESTS
        assert (each.sums.truth < 0) == (each.arm == BEFORE)
        assert each.noise is not None and abs(each.sums.truth) > 3 * each.noise
        assert each.sums.ours == pytest.approx(each.sums.truth, rel=0.15)


def test_of_several_engines_nothing_is_foretold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = told(tmp_path, monkeypatch, Asked(Setup(), "seats", 2), (Engine(seats=8), Engine(seats=2)), several=2)
    assert {each.silent for each in found} == {limited.SEVERAL}
    assert {each.sums.size for each in found} == {0}


def test_how_far_the_truth_of_a_single_round_may_be_off_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = told(tmp_path, monkeypatch, Asked(Setup(), "seats", 2), (Engine(seats=8), Engine(seats=2)), rounds=1)
    assert {each.sums.size for each in found if not each.silent} == {REQUESTS}
    assert {each.noise for each in found} == {None}


def test_of_a_recording_without_steps_nothing_is_foretold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(Setup(), "seats", 2)
    window = Window(0, HEALTHY, False, 0, 1, [], [], 0, {}, [])
    (tmp_path / "bundle-1").mkdir()
    (tmp_path / "bundle-1" / "client.jsonl").write_text("")
    empty = capture(served([Ask(0)], Engine()))
    monkeypatch.setattr(limited, "read_bundle", lambda bundle: empty)
    found = foretold(Rerun(asked, [Ran(0, arm, "bundle-1", window) for arm in (BEFORE, AFTER)], {}, []), tmp_path)
    assert {each.silent for each in found} == {limited.NONE_SERVED}
    assert {each.sums.size for each in found} == {0}
