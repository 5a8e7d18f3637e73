"""A life goes into few bytes and comes back for every tier: from a real recording of a few seconds."""

import json
import lzma
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller_core.data.capture import Capture
from teller_core.data.trace import Layer
from teller_core.errors import FormatError, LimitError, TellerError
from teller_core.lab.benchmark import pack as packing
from teller_core.lab.benchmark.episodes import composed, episodes
from teller_core.lab.benchmark.pack import Packed, capture_of, lives, pack, packed_bytes
from teller_core.lab.blocks import BlockTruth, Window
from tests.core.lab.benchmark.told import block, strike

RECORDED = Path(__file__).parents[3] / "data" / "captures" / "vllm_full"
ABOUT = {"side": "train", "model": "plain"}


def recording(folder: Path) -> Path:
    """As the lab leaves one: the service's log in server.log."""
    bundle = folder / "bundle-1"
    shutil.copytree(RECORDED, bundle)
    (bundle / "server.log").write_bytes((bundle / "service.jsonl").read_bytes())
    (bundle / "service.jsonl").unlink()
    (bundle / "bundle.json").write_text('{"schema": 1, "engine": "vllm", "host": "somewhere"}')
    return bundle


def truth_of(bundle: Path) -> list[BlockTruth]:
    """Two windows: the earlier half of the callers' requests, and the later one."""
    rows = [json.loads(line) for line in (bundle / "client.jsonl").read_text().splitlines()]
    rows.sort(key=lambda row: row["start_ns"])
    windows: list[Window] = []
    for number, own in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
        names, end = [row["rid"] for row in own], max(row["end_ns"] for row in own)
        windows.append(Window(0, number - 1, False, own[0]["start_ns"], end, names, [], 0, {}, []))
    return [block([strike("grammar_compile", "scheduler.grammar", where="load", role="client")], windows)]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    bundle = recording(tmp_path_factory.mktemp("life"))
    into = tmp_path_factory.mktemp("packed")
    size = pack(bundle, truth_of(bundle), ABOUT, into, "1f2e3d4c")
    (life,) = lives(into)
    assert life.path.stat().st_size == size < packed_bytes(into)
    return life


@pytest.fixture(scope="module")
def captures(packed: Packed) -> list[Capture]:
    return [capture_of(packed, tier) for tier in range(5)]


def test_a_life_comes_back_with_its_truth(packed: Packed) -> None:
    assert (packed.name, packed.about) == ("1f2e3d4c", ABOUT)
    assert packed.blocks[0].strikes[0].cause == "scheduler.grammar"
    assert [window.strike for window in packed.blocks[0].windows] == [-1, 0]


def test_each_tier_knows_more(captures: list[Capture]) -> None:
    assert [capture.tier for capture in captures] == [0, 1, 2, 3, 4]
    assert [len(capture.tokens.time) > 0 for capture in captures] == [False, True, True, True, True]
    assert [len(capture.steps.number) > 0 for capture in captures] == [False, False, True, True, True]
    assert len({capture.id for capture in captures}) == 5
    for capture in captures:
        capture.check()
    layers = [set[int]().union(*(rank.tree.trace.layer.tolist() for rank in c.ranks if rank.tree)) for c in captures]
    assert [Layer.OPERATOR in found for found in layers] == [False, False, False, False, True]


def test_steps_of_a_text_log_lie_where_the_recorder_saw_them(captures: list[Capture]) -> None:
    lines, recorded = captures[2].steps, captures[3].steps
    both = np.intersect1d(lines.number[lines.number >= 0], recorded.number)
    assert len(both) > 100
    apart = np.abs(
        lines.end()[np.searchsorted(lines.number, both)] - recorded.end()[np.searchsorted(recorded.number, both)]
    )
    assert float(np.median(apart)) < 1.5e9


def test_nothing_in_a_capture_tells_which_life_it_is(captures: list[Capture]) -> None:
    for capture in captures:
        assert capture.name == "life"
        assert "1f2e3d4c" not in repr(capture)
        assert "somewhere" not in repr(capture)
        assert "/opt/" not in repr(list(capture.lines.untrusted_text))


def test_episodes_are_cut_and_labelled(packed: Packed, captures: list[Capture]) -> None:
    for tier in (1, 3, 4):
        (found,) = episodes(packed, captures[tier], tier)
        names = [*packed.blocks[0].windows[0].requests, *packed.blocks[0].windows[1].requests]
        assert set(found.capture.requests.client_id) <= set(names)
        assert len(found.capture.requests.number) > 0.8 * len(names)
        assert {0, 1} <= set(found.labels.request.tolist()) <= {-1, 0, 1}  # -1: one that lost nothing to its twin
        assert (found.life, found.block, found.strike) == ("1f2e3d4c", 0, 0)
        assert len(found.labels.step) == len(found.capture.steps.number)
        (struck,) = composed(packed, captures[tier], tier, "struck")
        (healthy,) = composed(packed, captures[tier], tier, "healthy")
        (whole,) = composed(packed, captures[tier], tier, "life")
        assert {1} <= set(struck.labels.request.tolist()) <= {-1, 1}
        assert set(healthy.labels.request.tolist()) == {0}
        count = len(struck.capture.requests.number) + len(healthy.capture.requests.number)
        assert len(whole.capture.requests.number) == len(found.capture.requests.number) <= count


def test_the_same_recording_is_packed_to_the_same_bytes(packed: Packed, tmp_path: Path) -> None:
    bundle = recording(tmp_path)
    pack(bundle, truth_of(bundle), ABOUT, tmp_path / "again", "0")
    raw = [lzma.decompress(path.read_bytes()) for path in (packed.path, tmp_path / "again" / "lives" / "0.xz")]
    assert raw[0] == raw[1]


@pytest.mark.parametrize("word", ["gc_pause", "TELLER_LAB_FOLDER"])
def test_a_recording_that_tells_what_was_done_is_not_kept(tmp_path: Path, word: str) -> None:
    bundle = recording(tmp_path)
    with (bundle / "server.log").open("a") as log:
        log.write(f"ERROR 11-29 14:30:00 [core.py:3] {word}\n")
    with pytest.raises(TellerError, match=rf"texts hold {word}"):
        pack(bundle, [], ABOUT, tmp_path / "packed", "0")
    assert not [*(tmp_path / "packed" / "lives").iterdir()]


@pytest.mark.parametrize(("bound", "why"), [("MOST_BYTES", "bytes packed"), ("MOST_UNPACKED", "bytes unpacked")])
def test_a_life_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, why: str
) -> None:
    monkeypatch.setattr(packing, bound, 10)
    with pytest.raises(TellerError, match=why):
        pack(recording(tmp_path), [], ABOUT, tmp_path / "packed", "0")
    assert lives(tmp_path / "packed") == []


@pytest.mark.parametrize(
    "change",
    [
        {"format": 0},
        {"blocks": [{}]},
        {"blocks": [[]]},
        {"blocks": {"windows": []}},
        {"about": []},
        {"about": {"side": "../test"}},
        {"about": {**ABOUT, "wanted": [["host_busy", "strong"]]}},
        None,
    ],
)
def test_a_truth_that_cannot_be_read_is_refused(packed: Packed, tmp_path: Path, change: dict[str, Any] | None) -> None:
    for part in ("lives", "truth"):
        (tmp_path / part).mkdir()
    shutil.copy(packed.path, tmp_path / "lives")
    if change is not None:
        truth = json.loads((packed.path.parents[1] / "truth" / "1f2e3d4c.json").read_text())
        (tmp_path / "truth" / "1f2e3d4c.json").write_text(json.dumps({**truth, **change}))
    with pytest.raises(FormatError, match=r"1f2e3d4c\.json"):
        lives(tmp_path)


def test_a_damaged_store_is_refused(packed: Packed, tmp_path: Path) -> None:
    for content in (b"", packed.path.read_bytes()[:-100], b"no xz"):
        path = tmp_path / "life.xz"
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"life\.xz: it is damaged"):
            capture_of(Packed("life", path, {}, []), 1)
    for path in (tmp_path, tmp_path / "nowhere.xz"):
        with pytest.raises(FormatError, match="it cannot be read"):
            capture_of(Packed("life", path, {}, []), 1)


def test_a_store_of_another_life_than_its_truth_is_refused(packed: Packed) -> None:
    block = packed.blocks[0]
    windows = [replace(window, requests=["74a48063aa33", "d21fd52fa409"]) for window in block.windows]
    with pytest.raises(FormatError, match=r"1f2e3d4c\.xz: it holds no request that its truth names"):
        capture_of(replace(packed, blocks=[replace(block, windows=windows)]), 1)


def test_of_a_store_that_expands_without_end_no_more_is_unpacked_than_a_life_takes(tmp_path: Path) -> None:
    path = tmp_path / "life.xz"
    path.write_bytes(lzma.compress(bytes(2 * packing.MOST_UNPACKED), preset=0))
    assert path.stat().st_size < packing.MOST_BYTES
    with pytest.raises(LimitError, match=r"life\.xz: it takes over 134,217,728 bytes unpacked"):
        capture_of(Packed("life", path, {}, []), 1)


def test_a_store_of_more_bytes_than_any_life_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "life.xz"
    path.write_bytes(bytes(1001))
    monkeypatch.setattr(packing, "MOST_BYTES", 1000)
    with pytest.raises(LimitError, match=r"life\.xz: it takes over 1,000 bytes\."):
        capture_of(Packed("life", path, {}, []), 1)


def test_a_store_that_asks_for_more_memory_than_a_life_does_is_refused(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MOST_MEMORY", 64 << 20)  # the preset that packs asks for more
    with pytest.raises(FormatError, match="it is damaged"):
        capture_of(packed, 1)
