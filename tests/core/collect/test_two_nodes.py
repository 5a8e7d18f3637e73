"""Two ranks on both sides of a real link, each recorded into its own bundle: matched, put on one clock, and who was late told."""

import json
import os
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from teller_core.cli import main
from teller_core.collect.merge import machine_names, merge
from teller_core.data.capture import Capture
from teller_core.errors import FormatError, InputError
from teller_core.lab.link import Conditions, Link, linked, missing
from tests.studies.gloo_pair import Told, rebuilt, run_pair
from tests.studies.gloo_rank import LAYERS

STEPS = 24
SLOW_MS = 100.0
"""How much longer the slow rank computes before each of its collectives: far more than a busy machine keeps a rank waiting."""
DELAY_MS = 20.0
AWAY_NS = 3_600_000_000_123
"""An hour: what an undisciplined clock may be off."""


@contextmanager
def link_or_skip() -> Generator[Link]:
    """A link, where the system lets us have one."""
    pytest.importorskip("torch", reason="ranks need torch: the lab extra is not installed")
    if why := missing():
        pytest.skip(f"no link between two namespaces can be made here: {why}")
    with ExitStack() as stack:
        try:
            link = stack.enter_context(linked())
        except InputError as error:
            pytest.skip(f"no link between two namespaces can be made here: {error}")
        yield link


def delayed(link: Link, halt: Path) -> Callable[[], None]:
    """Make the link slow once a rank waits at ``halt``, and let it go on."""

    def wait_and_set() -> None:
        late = time.monotonic() + 60
        while not halt.exists() and time.monotonic() < late:
            time.sleep(0.02)
        link.set(Conditions(delay_ms=DELAY_MS))
        halt.unlink()

    return wait_and_set


@pytest.fixture(scope="module")
def straggling(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Bundles of two ranks, of which the second one is slow from the middle on."""
    with link_or_skip() as link:
        slow = {"SLOW_MS": str(SLOW_MS * LAYERS), "SLOW_FROM": str(STEPS // 2)}
        return run_pair(link, tmp_path_factory.mktemp("straggling"), STEPS, {1: slow})


@pytest.fixture(scope="module")
def degraded(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Bundles of two ranks whose link is slow from the middle on."""
    folder = tmp_path_factory.mktemp("degraded")
    halt = folder / "halt"
    with link_or_skip() as link:
        waits = {"HALT_AT": str(STEPS // 2), "HALT": str(halt)}
        return run_pair(link, folder, STEPS, {0: waits}, meanwhile=delayed(link, halt))


def test_every_collective_is_matched_by_its_number_on_both_ranks(straggling: list[Path]) -> None:
    capture = rebuilt(*straggling)
    assert [(rank.rank, rank.host) for rank in capture.ranks] == [(0, "node-a"), (1, "node-b")]
    assert capture.meetings.kind.count("all_reduce") == STEPS * LAYERS
    assert set(capture.meetings.how) == {"recorder"}
    assert capture.meetings.came.tolist() == [2] * len(capture.meetings.kind)


def test_a_slow_rank_is_told_from_when_on_it_is_slow(straggling: list[Path]) -> None:
    capture = rebuilt(*straggling)
    before, after = Told(capture, (0.0, 0.5)), Told(capture, (0.5, 1.0))
    assert before.wait_ms[0] < SLOW_MS / 2 < after.wait_ms[0]
    assert after.straggler() == 1


def test_a_slow_link_is_slow_for_both_ranks_and_no_rank_is_blamed(degraded: list[Path]) -> None:
    capture = rebuilt(*degraded)
    before, after = Told(capture, (0.0, 0.5)), Told(capture, (0.55, 1.0))
    assert after.straggler() is None
    assert before.transfer_ms + DELAY_MS < after.transfer_ms


def test_the_flight_recorder_counts_the_same_collectives(straggling: list[Path]) -> None:
    [dump] = straggling[0].glob("cap/fr-*.json")
    document = json.loads(dump.read_text())
    assert document["rank"] == 0
    reduced = [entry for entry in document["entries"] if entry["profiling_name"] == "gloo:all_reduce"]
    assert len(reduced) == STEPS * LAYERS


def moved(bundle: Path, target: Path) -> Path:
    """``bundle`` as a machine would have recorded it whose clock is AWAY_NS ahead, and which says nothing of its clock."""
    (target / "cap").mkdir(parents=True)
    about = json.loads((bundle / "bundle.json").read_text())
    about["clock"] = {"machine": "another", "max_error_us": None}
    (target / "bundle.json").write_text(json.dumps(about))
    for path in bundle.glob("cap/host-*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        (target / "cap" / path.name).write_text(
            "".join(json.dumps({**row, "t": row["t"] + AWAY_NS}) + "\n" for row in rows)
        )
    return target


def test_clocks_of_which_nobody_tells_are_bounded_by_the_collectives(straggling: list[Path], tmp_path: Path) -> None:
    near = straggling[0]
    capture = rebuilt(near, moved(straggling[1], tmp_path / "node-b"))
    shift, error = -capture.ranks[1].shift, capture.ranks[1].clock_error
    assert abs(shift - AWAY_NS) <= error < 1_000_000_000
    assert Told(capture, (0.55, 1.0)).straggler() == 1


def test_merged_bundles_say_what_their_machines_say_together(straggling: list[Path], tmp_path: Path) -> None:
    report = merge(straggling, tmp_path / "whole")
    assert [machine.name for machine in report.machines] == ["node-a", "node-b"]
    assert (report.same_clock, report.clock_error_ms) == (True, 0.0)
    assert essence(rebuilt(tmp_path / "whole")) == essence(rebuilt(*straggling))


def essence(capture: Capture) -> object:
    ranks = [(rank.rank, rank.host, rank.pid, rank.shift, rank.clock_error) for rank in capture.ranks]
    met = list(
        zip(capture.meetings.group, capture.meetings.late.tolist(), capture.meetings.transfer.tolist(), strict=True)
    )
    return ranks, met, capture.pauses.process


def bundle(folder: Path, **about: object) -> Path:
    (folder / "cap").mkdir(parents=True)
    (folder / "bundle.json").write_text(json.dumps({"schema": 2, "engine": "vllm", "host": "box", **about}))
    (folder / "cap" / "host-7.jsonl").write_text(
        json.dumps({"ph": "G", "t": 1_795_992_531_000_000_000, "tid": 7, "name": "gc", "dur": 5_000_000, "gen": 2})
        + "\n"
    )
    (folder / "cap" / ".part").write_text("unfinished")
    (folder / "cap" / "PROFILE").write_text("5")
    return folder


def test_processes_of_two_machines_that_have_one_pid_stay_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundles = [bundle(tmp_path / name) for name in ("one", "two")]
    assert main(["bundle", "merge", *map(str, bundles), "-o", str(tmp_path / "whole")]) == 0
    assert "Next: teller import" in capsys.readouterr().out
    assert sorted(set(rebuilt(tmp_path / "whole").pauses.process)) == ["one/7", "two/7"]
    assert sorted(set(rebuilt(*bundles).pauses.process)) == ["one/7", "two/7"]
    assert sorted(path.name for path in (tmp_path / "whole" / "one").rglob("*")) == [
        "bundle.json",
        "cap",
        "host-7.jsonl",
    ]
    assert main(["doctor", str(tmp_path / "whole")]) == 2
    assert "Name the folder of one in it" in capsys.readouterr().err
    assert [one["name"] for one in json.loads((tmp_path / "whole" / "bundle.json").read_text())["merged"]] == [
        "one",
        "two",
    ]


@pytest.mark.parametrize(
    ("clocks", "same", "error"),
    [
        (({"machine": "a", "max_error_us": None}, {"machine": "a", "max_error_us": None}), True, 0.0),
        (({"machine": "a", "max_error_us": 1500}, {"machine": "b", "max_error_us": 250}), False, 1.75),
        (({"machine": "a", "max_error_us": 1500}, {"machine": "b", "max_error_us": None}), False, None),
        (({"machine": "", "max_error_us": 3}, {"machine": "", "max_error_us": 4}), False, 0.007),
        ((None, {"machine": "b", "max_error_us": 4}), False, None),
    ],
)
def test_the_clocks_are_as_good_as_their_kernels_say(
    tmp_path: Path, clocks: tuple[object, object], same: bool, error: float | None
) -> None:
    bundles = [
        bundle(tmp_path / str(at), **({} if clock is None else {"clock": clock})) for at, clock in enumerate(clocks)
    ]
    report = merge(bundles, tmp_path / "whole")
    assert (report.same_clock, report.clock_error_ms) == (same, error)


def test_machines_are_named_by_where_their_paths_part() -> None:
    named = machine_names([Path("/r/a/x"), Path("/r/a/y"), Path("/r/b/x")])
    assert named == ["a", "y", "b"]


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    one, two = bundle(tmp_path / "one"), bundle(tmp_path / "two")
    merge([one, two], tmp_path / "whole")
    (tmp_path / "none").mkdir()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "bundle.json").write_text("[1]")
    wrong: list[tuple[list[Path], Path, str]] = [
        ([one], tmp_path / "t", "one alone has nothing to be merged with"),
        ([one, one], tmp_path / "t", "one is named twice"),
        ([one, tmp_path / "none"], tmp_path / "t", "it has no bundle.json"),
        ([one, tmp_path / "odd"], tmp_path / "t", "its bundle.json is none of ours"),
        ([one, tmp_path / "whole"], tmp_path / "t", "it is merged already"),
        ([one, two], tmp_path / "whole", "it is not empty"),
        ([one, two], one / "t", "it lies in one of the bundles"),
    ]
    for bundles, target, words in wrong:
        with pytest.raises(InputError, match=words):
            merge(bundles, target)
    assert not (tmp_path / "t").exists()


def _bundle(folder: Path, **about: Any) -> Path:
    (folder / "cap").mkdir(parents=True)
    (folder / "cap" / "host-5.jsonl").write_text("{}\n")
    (folder / "bundle.json").write_text(json.dumps({"schema": 2, "engine": "", **about}))
    return folder


def test_folders_that_would_be_hidden_or_in_the_way_get_names_of_their_own(tmp_path: Path) -> None:
    names = (".one", "..two", "...", "bundle.json")
    report = merge([_bundle(tmp_path / name) for name in names], tmp_path / "whole")
    assert [machine.name for machine in report.machines] == ["one", "two", "machine-3", "bundle.json-4"]
    assert all((tmp_path / "whole" / machine.name / "cap" / "host-5.jsonl").exists() for machine in report.machines)


def test_what_a_bundle_says_of_its_clock_is_taken_for_no_more_than_it_may_be(tmp_path: Path) -> None:
    odd = [10**4000, -5, True, 1e300, [1], None, "7"]
    bundles = [
        _bundle(tmp_path / f"n{i}", clock={"machine": str(i), "max_error_us": value}, start_ns=value, stop_ns=value)
        for i, value in enumerate(odd)
    ]
    report = merge(bundles, tmp_path / "whole")
    assert {machine.clock_error_ms for machine in report.machines} == {None}
    assert report.clock_error_ms is None
    assert "start_ns" not in json.loads((tmp_path / "whole" / "bundle.json").read_text())


def test_a_bundle_inside_another_is_refused(tmp_path: Path) -> None:
    outer = _bundle(tmp_path / "a")
    with pytest.raises(InputError, match="one lies in another"):
        merge([outer, _bundle(outer / "b")], tmp_path / "whole")


def test_a_description_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    bundle = _bundle(tmp_path / "a")
    (bundle / "bundle.json").unlink()
    os.mkfifo(bundle / "bundle.json")
    with pytest.raises(FormatError, match=r"its bundle\.json is broken"):
        merge([bundle, _bundle(tmp_path / "b")], tmp_path / "whole")


@pytest.mark.parametrize("there", [False, True])
def test_a_merge_that_finds_no_room_leaves_nothing_half(
    tmp_path: Path, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("teller_core.collect.merge.write_about", full)
    target = tmp_path / "whole"
    if there:
        target.mkdir()
    with pytest.raises(InputError, match="no space left"):
        merge([_bundle(tmp_path / "a"), _bundle(tmp_path / "b")], target)
    assert target.exists() == there
    assert not there or not list(target.iterdir())
