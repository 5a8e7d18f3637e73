"""Episodes of the benchmark become those of the evaluation, and the verb writes its tables beside the lives."""

import argparse
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller_core.cli.lab import VERBS
from teller_core.errors import InputError, UnknownName
from teller_core.lab.benchmark.chosen import Chosen
from teller_core.lab.benchmark.episodes import Episode as Cut
from teller_core.lab.benchmark.labels import Labels as Told
from teller_core.lab.benchmark.pack import Packed
from teller_core.lab.blocks import BlockTruth, StrikeTruth, Window
from teller_core.lab.evaluation import loading, results
from teller_core.lab.evaluation.loading import Opened, about_of, episode_of, of_test, opened, sides
from teller_core.lab.evaluation.ratchet import read, written
from teller_core.lab.evaluation.running import Sides
from tests.core.lab.evaluation.made import episode, side


def made_window(strike: int, begin: int) -> Window:
    fields: dict[str, Any] = dict.fromkeys(Window.__dataclass_fields__)
    return Window(
        **{**fields, "strike": strike, "begin": begin, "end": begin + 10, "requests": [], "others": [], "delays": []}
    )


def made_strike(cause: str | None) -> StrikeTruth:
    fields: dict[str, Any] = dict.fromkeys(StrikeTruth.__dataclass_fields__)
    return StrikeTruth(**{**fields, "fault": "some_fault", "cause": cause, "severity": "clear"})


def test_labels_keep_what_they_say_and_windows_are_numbered_over_the_life(tmp_path: Path) -> None:
    seen = episode(0, "gc").seen
    requests, steps = len(seen.capture.requests.number), len(seen.capture.steps.engine)
    windows = [made_window(-1, 100), made_window(0, 200), made_window(-1, 300)]
    block = BlockTruth(block=0, bundle="b", windows=windows, strikes=[made_strike("host.gc_pause")], healthy_differ={})
    life = Packed("a1", tmp_path, {"side": "test", "kind": {"engine": "vllm", "ranks": 2}, "load": "chat"}, [block])
    told = Told(
        request=np.resize(np.array([-1, 0, 1, 2], np.int8), requests),
        cause=["host.gc_pause" if at % 4 == 2 else "" for at in range(requests)],
        step=np.resize(np.array([-1, 0, 1], np.int8), steps),
        operators=[("aten::mm",) if at == 5 else () for at in range(steps)],
        ranks=[(0,) if at == 6 else () for at in range(steps)],
        request_window=np.resize(np.array([0, 1, -1], np.int32), requests),
        step_window=np.resize(np.array([1, -1], np.int32), steps),
    )
    chosen = [Chosen(block, windows[2]), Chosen(block, windows[1])]
    found = episode_of(life, Cut("a1", 0, 0, block.strikes[0], 4.0, chosen, seen.capture, told))
    labels = found.labels
    labels.check(found.seen.capture)
    assert labels.request[:4] == ["?", "", "host.gc_pause", ""] and labels.hard[:4].tolist() == [
        False,
        False,
        False,
        True,
    ]
    assert labels.step[:3].tolist() == [-1, 0, 1]
    assert labels.request_window[:3].tolist() == [2, 1, -1] and labels.step_window[:2].tolist() == [1, -1]
    assert (labels.operators, labels.ranks) == ({5: ("aten::mm",)}, {6: 0})
    assert found.seen.steps_asked.tolist() == [at for at in range(steps) if at % 3 or at in (5, 6)]
    only = episode_of(life, Cut("a1", 0, 0, block.strikes[0], 4.0, chosen, seen.capture, told), of_steps=False)
    assert not len(only.seen.steps_asked) and only.seen.requests_asked.tolist() == found.seen.requests_asked.tolist()
    assert (labels.fault, labels.severity, labels.d_prime, labels.healthy_ns) == ("some_fault", "clear", 4.0, 10)
    assert found.about == about_of(life) == {"side": "test", "engine": "vllm", "ranks": "2", "load": "chat"}


def test_each_healthy_window_is_asked_about_in_some_of_the_episodes_that_it_stands_in(tmp_path: Path) -> None:
    seen = episode(0, "gc").seen
    requests, steps = len(seen.capture.requests.number), len(seen.capture.steps.engine)
    windows = [made_window(-1, 100 * at) for at in range(6)] + [made_window(0, 700)]
    block = BlockTruth(block=0, bundle="b", windows=windows, strikes=[made_strike("host.gc_pause")], healthy_differ={})
    life = Packed("a1", tmp_path, {"side": "test"}, [block])
    chosen = [Chosen(block, window) for window in windows]
    of_window = np.resize(np.arange(7, dtype=np.int32), requests)
    told = Told(
        request=np.where(of_window == 6, 1, 0).astype(np.int8),
        cause=["host.gc_pause" if at == 6 else "" for at in of_window.tolist()],
        step=np.zeros(steps, np.int8),
        operators=[()] * steps,
        ranks=[()] * steps,
        request_window=of_window,
        step_window=np.zeros(steps, np.int32),
    )
    times = np.zeros(7, dtype=np.int64)
    for strike in range(6):
        found = episode_of(life, Cut("a1", 0, strike, block.strikes[0], 4.0, chosen, seen.capture, told), asked=3)
        assert found.seen.asked is not None
        assert found.seen.asked.tolist() == [label != "?" for label in found.labels.request]
        times += np.bincount(of_window[found.seen.asked], minlength=7) > 0
        assert found.labels.healthy_ns == 20
    assert times.tolist() == [2, 2, 2, 2, 2, 2, 6]


@pytest.mark.parametrize("name", ["fused", "model"])
def test_what_the_model_that_ships_never_saw_is_not_asked(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has learned from all of the training side"):
        results.evaluate_left_out(name, tmp_path, [4], "fault", lambda text: None)


def test_a_folder_without_lives_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no life is packed in it"), opened(tmp_path, lambda text: None):
        pass


def test_lives_are_unpacked_once_and_the_training_side_where_somebody_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = [Packed(name, tmp_path, {"side": name}, []) for name in ("train", "test")]
    monkeypatch.setattr(loading, "lives", lambda folder: packed)
    monkeypatch.setattr(loading, "unpack", lambda life, path: path.write_text(life.name))
    for wanted, names in ((None, ["train", "test"]), (of_test, ["test"])):
        with opened(tmp_path, lambda text: None, 2, wanted=wanted) as given:
            assert [given.stores[life.name].read_text() for life in given.lives] == names
        assert not any(store.exists() for store in given.stores.values())
    nobody = opened(tmp_path, lambda text: None, wanted=lambda life: False)
    with pytest.raises(InputError, match="none of its lives is of those to judge"), nobody:
        pass


def test_lives_are_read_side_by_side_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = [Packed(name, tmp_path, {"side": name}, []) for name in ("train", "test")]
    monkeypatch.setattr(loading, "_episodes", lambda life, store, tier: [(life.name, replace(episode(0, "gc")))])
    both = sides(Opened(packed, {life.name: tmp_path for life in packed}), 3, lambda text: None, 2)
    assert (len(both.train), len(both.test)) == (1, 1) and not both.whole
    assert {"steps", "requests"} <= set(vars(both.test[0].seen))
    assert both.test[0].labels.request == episode(0, "gc").labels.request


def given_sides(monkeypatch: pytest.MonkeyPatch, found: Sides) -> None:
    """What is read is ``found``, whatever is packed."""
    monkeypatch.setattr(results, "opened", lambda *given, **how: nullcontext())
    monkeypatch.setattr(results, "sides", lambda *given: found)


def test_tables_are_written_and_the_ratchet_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = side(range(2, 9))
    given_sides(monkeypatch, Sides(side([0, 1]), test))
    (text,) = results.evaluate("ours", tmp_path, [3], lambda text: None)
    into = tmp_path / results.RESULTS
    assert (into / "ours.T3.txt").read_text() == text
    reached = results.floors(into)
    assert {key.figure for key in reached} >= {"request.top_1", "step.f1_at_43", "certainty.ece"}
    assert set(results.told(into)) >= set(reached)
    summary = (into / results.SUMMARY).read_text()
    assert summary.startswith("# Methods on the lives of the benchmark\n\n- T3. Test side: 7 lives, ")
    assert "| ours | 1.000 (1.000 to 1.000) |" in summary and "By cause: shares" in summary
    higher = {
        key: replace_value(floor, 2.0) if key.figure == "request.top_1" else floor for key, floor in reached.items()
    }
    (into / results.RATCHET).write_text(written(higher))
    _, complaint = results.evaluate("ours", tmp_path, [3], lambda text: None)
    assert complaint.startswith("Below what was reached before: ours T3 request.top_1: it was 2.0000")
    assert read((into / results.RATCHET).read_text()) == higher


def replace_value(floor: Any, value: float) -> Any:
    return floor._replace(value=value)


def test_what_is_left_out_is_judged_by_every_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = [{"side": "train" if each.life < "life-2" else "test", "engine": "e"} for each in side(range(4))]
    episodes = [replace(each, about=mine) for each, mine in zip(side(range(4)), about, strict=True)]
    given_sides(monkeypatch, Sides(episodes[:6], episodes[6:]))
    monkeypatch.setattr(results, "METHODS", {name: results.METHODS[name] for name in ("ours", "zscore")})
    (text,) = results.evaluate_left_out("all", tmp_path, [3], "fault", lambda text: None)
    assert (tmp_path / "results" / "all.T3.without-fault.txt").read_text() == text
    lines = [line.split()[:3] for line in text.splitlines()[2:]]
    assert lines == [[name, fault, "2"] for name in ("ours", "zscore") for fault in ("disk", "gc", "starved")]
    lines = {
        name: results.evaluate_left_out(name, tmp_path, [3], "engine", lambda text: None)[0].splitlines()[2:]
        for name in ("ours", "zscore")
    }
    assert len(lines["ours"]) == 1 and not lines["zscore"]  # there is one engine: nothing is left to learn from


def test_methods_side_by_side_say_what_they_say_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_sides(monkeypatch, Sides(side([0, 1]), side(range(2, 9))))
    monkeypatch.setattr(results, "METHODS", {name: results.METHODS[name] for name in ("ours", "zscore")})
    monkeypatch.setattr(results, "cores", lambda: 2)
    together = results.evaluate("all", tmp_path, [3], lambda text: None)
    monkeypatch.setattr(results, "cores", lambda: 1)
    assert [results.evaluate(name, tmp_path, [3], lambda text: None)[0] for name in ("ours", "zscore")] == together


def test_a_table_of_an_unknown_method_is_refused(tmp_path: Path) -> None:
    (tmp_path / "oracle.T3.txt").write_text("oracle")
    with pytest.raises(UnknownName, match="of no method"):
        results.told(tmp_path)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"json": True}, "its tables are text"),
        ({}, "no life is packed"),
        ({"leave_out": "fault"}, "no life is packed"),
        ({"versus": "paper"}, "what draws of lives came to is not kept of both"),
        ({"weights": Path("some.safetensors")}, "ours asks no model"),
    ],
)
def test_the_verb_judges_as_it_is_asked_to_and_has_no_json(tmp_path: Path, more: dict[str, Any], why: str) -> None:
    given = {"action": "eval", "method": "ours", "lives": tmp_path, "tier": 4, "side": "test", "json": False}
    given |= dict.fromkeys(("leave_out", "replayed", "versus", "weights"))
    with pytest.raises(InputError, match=why):
        VERBS["lab"](argparse.Namespace(**given | more), lambda: None)
