"""What a request would have saved: intervals that hold, pairs that are whole, and faults that are lifted."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.cli import main
from teller_core.data.steps import TokenTimes
from teller_core.data.table import UNKNOWN
from teller_core.errors import FormatError, InputError
from teller_core.lab.benchmark import pack
from teller_core.lab.blocks import HEALTHY, BlockTruth, StrikeTruth, Window
from teller_core.lab.savings import lifted, middle, rows_in, rows_of, saved

MS = 1_000_000


def row(name: str, took: float, error: str | None = None) -> dict[str, Any]:
    """A request whose four tokens come evenly."""
    times = [round(took * MS * part / 4) for part in (1, 2, 3, 4)]
    return {"rid": name, "start_ns": 0, "end_ns": times[-1], "tok_ns": times, "err": error}


def pairs(before: Sequence[float], after: Sequence[float]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [
        (row(f"b{at}", one), row(f"a{at}", other)) for at, (one, other) in enumerate(zip(before, after, strict=True))
    ]


@pytest.mark.parametrize("count", [6, 8, 10, 15])
def test_nineteen_of_twenty_intervals_hold_the_median_of_any_distribution(count: int) -> None:
    chance = np.random.default_rng(count)
    hold = 0
    for _ in range(2000):
        found = middle(np.exp(chance.exponential(2.0, count)).tolist())
        assert found is not None
        hold += found[1] <= np.exp(2.0 * np.log(2.0)) <= found[2]
    assert hold >= 0.94 * 2000


@given(st.lists(st.floats(0.1, 10.0), max_size=30))
def test_an_interval_lies_around_its_median_and_needs_six_values(values: list[float]) -> None:
    found = middle(values)
    assert (found is None) == (len(values) < 6)
    if found is not None:
        assert min(values) <= found[1] <= found[0] <= found[2] <= max(values)


def test_a_request_that_takes_half_as_long_after_the_change_saves_half() -> None:
    one = saved(3, pairs([100, 102, 98, 101, 99, 100], [50, 51, 49, 50.5, 49.5, 50]))
    assert (one.place, one.names[0], len(one.names)) == (3, ("b0", "a0"), 6)
    saving = one.latencies["e2e"]
    assert (saving.before, saving.saved, saving.low, saving.high) == (100 * MS, 50 * MS, 49 * MS, 51 * MS)
    assert saving.ratio == (0.5, 0.5, 0.5, 6)
    assert one.latencies.keys() == {"ttft", "itl_mean", "itl_max", "e2e"}


def test_a_pair_of_which_one_failed_is_none() -> None:
    both = pairs([100] * 6, [50] * 6)
    both[2][1]["err"] = "gone"
    assert saved(0, both).latencies == {}


def window(turn: int, strike: int, took: Sequence[float], rows: dict[str, Any], *, profiled: bool = False) -> Window:
    """A window whose requests took so many ms."""
    names = [f"{len(rows) + at:04x}" for at in range(len(took))]
    rows.update({name: row(name, ms) for name, ms in zip(names, took, strict=True)})
    return Window(turn, strike, profiled, 0, 1, names, [], 0, {}, [])


def block(rows: dict[str, Any], factor: float, noise: float, rejected: str | None = None) -> BlockTruth:
    chance = random.Random(4)

    def took(times: float = 1.0) -> list[float]:
        return [times * (100 + 10 * place) * chance.lognormvariate(0.0, noise) for place in range(6)]

    windows = [
        one
        for turn in range(4)
        for one in (
            window(turn, HEALTHY, took(), rows),
            window(turn, 0, took(factor), rows),
            window(turn, HEALTHY, took(), rows),
        )
    ]
    windows.append(window(4, 0, took(50.0), rows, profiled=True))
    truth = StrikeTruth(
        "worker_quota", "host.cpu_starvation", "strong", {}, "outside", "worker", "e2e", {}, 0.1, rejected
    )
    return BlockTruth(2, "bundle-1", windows, [truth], {})


def test_a_struck_request_would_have_taken_as_long_as_its_twins() -> None:
    rows: dict[str, Any] = {}
    found = lifted([block(rows, 4.0, 0.05)], rows)
    assert [(one.block, one.strike, one.round, one.fault) for one in found] == [
        (2, 0, turn, "worker_quota") for turn in range(4)
    ]
    savings = [each.latencies["e2e"] for one in found for each in one.requests]
    assert len(savings) == 24
    assert sum(each.ratio.low <= 0.25 <= each.ratio.high for each in savings) >= 20
    assert all(each.low <= each.saved <= each.high and each.low > 0 for each in savings)
    assert all(len(each.names) == 2 for one in found for each in one.requests)


def test_what_moved_nothing_saves_nothing() -> None:
    rows: dict[str, Any] = {}
    found = lifted([block(rows, 1.0, 0.05, "small")], rows)
    savings = [each.latencies["e2e"] for one in found for each in one.requests]
    assert sum(each.low <= 0 <= each.high for each in savings) >= 20
    assert {one.rejected for one in found} == {"small"}


def test_a_request_that_nobody_measured_saves_what_nobody_knows() -> None:
    rows: dict[str, Any] = {}
    whole = block(rows, 4.0, 0.05)
    del rows[whole.windows[1].requests[0]]
    rows[whole.windows[0].requests[1]]["err"] = "gone"
    first = lifted([whole], rows)[0].requests
    assert [bool(each.latencies) for each in first] == [False, False, True, True, True, True]


def test_the_page_of_a_life_has_a_line_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dataclasses import asdict

    rows: dict[str, Any] = {}
    life = tmp_path / "life"
    (life / "bundle-1").mkdir(parents=True)
    (life / "truth.jsonl").write_text(json.dumps(asdict(block(rows, 4.0, 0.05))) + "\n")
    (life / "bundle-1" / "client.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows.values()))
    assert main(["lab", "lifted", str(life), "--to", str(tmp_path / "lifted.json")]) == 0
    assert "worker_quota            strong           24     24   0.2" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "lifted.json").read_text())) == 4
    assert main(["lab", "lifted", str(life), "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["faults"]
    assert (line["cause"], line["requests"], line["saved"]) == ("host.cpu_starvation", 24, 24)
    assert line["ratio"] == pytest.approx(0.25, rel=0.1)


def capture_with(rows: dict[str, Any]) -> Any:
    """A capture that tells of these requests, and of one that has no client."""
    given = [*rows.values(), {**row("", 5.0), "start_ns": UNKNOWN}]
    requests = SimpleNamespace(
        client_id=[each["rid"] for each in given],
        client_start=np.array([each["start_ns"] for each in given]),
        client_end=np.array([each["end_ns"] for each in given]),
        failed=np.array([each["err"] is not None for each in given]),
    )
    offset = np.cumsum([0, *(len(each["tok_ns"]) for each in given)])
    tokens = TokenTimes(offset, np.concatenate([each["tok_ns"] for each in given]))
    return SimpleNamespace(requests=requests, tokens=tokens)


def test_a_packed_life_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: dict[str, Any] = {}
    blocks = [block(rows, 4.0, 0.05)]
    rows["0003"]["err"] = "gone"
    assert lifted(blocks, rows_in(capture_with(rows))) == lifted(blocks, rows)
    asked: list[tuple[Path, str]] = []

    def read_truth(folder: Path, name: str) -> Any:
        asked.append((folder, name))
        return SimpleNamespace(blocks=blocks)

    monkeypatch.setattr(pack, "read_truth", read_truth)
    monkeypatch.setattr(pack, "capture_of", lambda life, tier: capture_with(rows))
    assert main(["lab", "lifted", str(tmp_path / "lives" / "0a1b.xz"), "--json"]) == 0
    assert asked == [(tmp_path, "0a1b")]
    assert json.loads(capsys.readouterr().out)["life"] == "0a1b"


def test_what_is_no_life_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "lifted", str(tmp_path)]) == 2
    assert "it has no truth" in capsys.readouterr().err
    with pytest.raises(InputError, match="lacks what clients measured"):
        rows_of(tmp_path)
    for cut in ('{"rid": "00', "[]", "{}"):
        (tmp_path / "client.jsonl").write_text(cut)
        with pytest.raises(FormatError, match="damaged"):
            rows_of(tmp_path)
