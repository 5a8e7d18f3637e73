"""A life of a server, over one that is made up: its plan, its truth beside the recording, and how it goes on."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from teller_core.cli import main
from teller_core.errors import FormatError, InputError, TellerError, UnknownName
from teller_core.lab import life, load
from teller_core.lab.blocks import HEALTHY, STRIKES, BlockTruth, StrikeTruth, plan_life
from teller_core.lab.injectors import Injector, injectors
from teller_core.lab.life import run_life, truths
from teller_core.lab.outside import Delay
from teller_core.lab.serving import Setup
from teller_core.lab.striking import Struck
from teller_core.lab.telling import lines_of, report_of
from teller_core.tell.layout import Style

MS = 1_000_000
VLLM = Setup("vllm")
WANTED = [("host_stall", "strong"), ("gc_pause", "clear"), ("frozen_process", None)]


class Made:
    """A service that answers at once: 5 ms a token, ``factor`` as much where a fault with ``factors`` strikes."""

    def __init__(self, factors: Mapping[str, float]) -> None:
        self.factors = factors
        self.starts = 0
        self.factor = 1.0
        self.dies_after: int | None = None
        self.struck_names: list[str] = []
        self.windows_profiled = 0

    @contextmanager
    def served(
        self, setup: Setup, start: Path, bundle: Path, progress: object, first: Sequence[load.Ask]
    ) -> Generator[Any]:
        self.starts += 1
        bundle.mkdir()
        self.factor = 7.0
        rows = self.send(load.Target(1, "tiny"), first, 1, 1)
        yield SimpleNamespace(
            setup=setup,
            service=SimpleNamespace(folder=bundle),
            others=(),
            target=load.Target(1, "tiny"),
            provides={"root", "fresh_start", "shared_prefix"},
            first=rows,
        )

    @contextmanager
    def struck(self, one: Injector | None, knobs: Mapping[str, float], live: object) -> Generator[Struck]:
        what = Struck(begin=100, end=900, noise={"worker_run_queue_wait_ns": 5 * MS, "machine_cpu_pressure_ns": None})
        what.noise["throttled_ns"] = None
        if one is not None:
            self.struck_names.append(one.name)
            what.delays = [Delay(200, 300, 100)]
        self.factor = 1.0 if one is None else self.factors.get(one.name, 1.0)
        yield what

    @contextmanager
    def profiled(self, live: object, others: object) -> Generator[None]:
        self.windows_profiled += 1
        yield

    def send(self, target: load.Target, asks: Sequence[load.Ask], connections: int, seed: int) -> list[dict[str, Any]]:
        if self.dies_after is not None and len(self.struck_names) > self.dies_after:
            return [{"rid": ask.rid, "start_ns": 0, "end_ns": 1, "tok_ns": [], "err": "gone"} for ask in asks]
        rows: list[dict[str, Any]] = []
        for ask in asks:
            step = int(5 * MS * self.factor * (1 + 0.01 * (int(ask.rid, 16) % 5)))
            times = [1000 + step * (number + 1) for number in range(ask.output)]
            rows.append({"rid": ask.rid, "start_ns": 1000, "end_ns": times[-1], "tok_ns": times, "err": None})
        return rows


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Made:
    made = Made({"host_stall": 3.0, "frozen_process": 1.5})
    for name in ("served", "struck"):
        monkeypatch.setattr(life, name, getattr(made, name))
    monkeypatch.setattr(life, "program", lambda engine, vllm: Path("engine"))
    monkeypatch.setattr(life.load, "send", made.send)
    monkeypatch.setattr(life, "PAUSE_S", 0.0)
    monkeypatch.setattr(life, "profiled", made.profiled)
    monkeypatch.setattr(life, "warm", lambda live, others: [])
    return made


def told(_: str) -> None:
    pass


def strikes(found: Sequence[BlockTruth]) -> dict[str, StrikeTruth]:
    return {strike.fault: strike for block in found for strike in block.strikes}


def test_a_plan_is_the_seeds_own() -> None:
    one = plan_life(3, WANTED, 8)
    assert one == plan_life(3, WANTED, 8)
    (block,) = one
    assert {(strike.fault, strike.severity) for strike in block.strikes} >= {
        ("host_stall", "strong"),
        ("gc_pause", "clear"),
    }
    *plain, profiled = block.orders
    assert all(sorted(order) == [HEALTHY] * 2 + [0, 1, 2] for order in plain)
    assert sorted(profiled) == [HEALTHY, 0, 1, 2]
    many = [(name, None) for name in injectors()]
    plans = [plan_life(seed, many, 8) for seed in range(4)]
    assert all(sum(len(block.strikes) for block in plan) == len(many) for plan in plans)
    assert all([strike.fault for strike in plan[0].strikes] == ["warm_up"] for plan in plans)
    assert [block.number for block in plans[0]] == [*range(len(plans[0]))]
    assert {len(block.strikes) for plan in plans for block in plan[1:]} <= {STRIKES, STRIKES - 1, STRIKES - 2}
    assert len({tuple(strike.fault for block in plan for strike in block.strikes) for plan in plans}) == 4
    assert len({tuple(order) for plan in plans for block in plan for order in block.orders}) > 20


def test_the_truth_says_what_moved_by_how_much_and_what_did_not(service: Made, tmp_path: Path) -> None:
    blocks = run_life(VLLM, 3, WANTED, tmp_path / "life", told, requests=12)
    found = strikes(blocks)
    assert found["host_stall"].rejected is None
    assert found["host_stall"].moved["e2e"].median == pytest.approx(3.0, rel=0.05)
    assert found["host_stall"].cause == "host.blocking_call"
    assert found["gc_pause"].rejected is not None
    assert found["frozen_process"].rejected is None
    (block,) = blocks
    assert [window.strike for window in block.windows].count(HEALTHY) == 4 * 2 + 1
    assert [window.round for window in block.windows if window.profiled] == [4] * 4
    assert service.windows_profiled == 4
    assert {window.strike: window.delays for window in block.windows}[HEALTHY] == []
    assert {window.strike: window.delays for window in block.windows}[0] == [Delay(200, 300, 100)]
    assert truths(tmp_path / "life") == blocks


def test_the_recording_holds_no_word_of_what_was_done(service: Made, tmp_path: Path) -> None:
    run_life(VLLM, 3, WANTED, tmp_path / "life", told, requests=12)
    (bundle,) = (tmp_path / "life").glob("bundle-*")
    rows = [json.loads(line) for line in (bundle / "client.jsonl").read_text().splitlines()]
    assert len(rows) == 4 * (2 + 3) * 3 + 4 * 3
    assert len({row["rid"] for row in rows}) == len(rows)
    text = (bundle / "client.jsonl").read_text()
    assert not [name for name in (*injectors(), "healthy", "struck") if name in text]


def test_a_life_that_ended_early_goes_on_in_a_new_server_with_what_is_missing(service: Made, tmp_path: Path) -> None:
    wanted = [
        (name, "strong") for name in ("host_stall", "gc_pause", "frozen_process", "host_busy", "slow_scheduler") * 2
    ]
    service.dies_after = 25
    with pytest.raises(TellerError, match="answers no request"):
        run_life(VLLM, 3, wanted, tmp_path / "life", told, requests=12)
    assert [block.block for block in truths(tmp_path / "life")] == [0]
    service.dies_after = None
    with (tmp_path / "life" / "truth.jsonl").open("a") as file:
        file.write('{"block": 1, "bun')  # the machine went away
    run_life(VLLM, 3, wanted, tmp_path / "life", told, requests=12)
    whole = truths(tmp_path / "life")
    assert [(block.block, block.bundle) for block in whole] == [(0, "bundle-1"), (1, "bundle-2")]
    assert run_life(VLLM, 3, wanted, tmp_path / "life", told, requests=12) == []
    assert service.starts == 2


def test_a_folder_of_another_life_or_of_something_else_is_refused(service: Made, tmp_path: Path) -> None:
    run_life(VLLM, 3, WANTED[:1], tmp_path / "life", told, requests=12)
    with pytest.raises(InputError, match="another one"):
        run_life(VLLM, 4, WANTED[:1], tmp_path / "life", told, requests=12)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").touch()
    with pytest.raises(InputError, match="something else"):
        run_life(VLLM, 3, WANTED[:1], tmp_path / "other", told, requests=12)


@pytest.mark.parametrize("text", ["", '{"model": "pl', "[" * 100_000])
def test_a_folder_whose_plan_was_cut_is_of_another_life(service: Made, tmp_path: Path, text: str) -> None:
    (tmp_path / "life").mkdir()
    (tmp_path / "life" / "life.json").write_text(text)
    with pytest.raises(InputError, match="another one"):
        run_life(VLLM, 3, WANTED[:1], tmp_path / "life", told, requests=12)


@pytest.mark.parametrize("line", ["{", "[]", "null", '{"block": 1}', '{"windows": [3]}'])
def test_a_truth_that_is_none_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "truth.jsonl").write_text(f"{line}\n")
    with pytest.raises(FormatError, match="damaged"):
        truths(tmp_path)


@pytest.mark.parametrize(
    ("engine", "fault", "why"),
    [
        ("vllm", "gremlins", "none of"),
        ("transformers", "kv_pressure", "no place for it"),
        ("vllm", "worker_quota", "it needs a control group"),
        ("vllm", "late_rank", "it needs a second rank"),
    ],
)
def test_what_cannot_be_done_is_refused(service: Made, tmp_path: Path, engine: str, fault: str, why: str) -> None:
    with pytest.raises((UnknownName, InputError), match=why):
        run_life(Setup(engine), 3, [(fault, None)], tmp_path / "life", told, requests=12)
    assert not truths(tmp_path / "life")


def test_the_answer_says_it_to_a_person(service: Made, tmp_path: Path) -> None:
    (block,) = run_life(VLLM, 3, WANTED[:1], tmp_path / "life", told, requests=12)
    report = report_of(block, "vllm", 3, 12.5, kept=True)
    assert (report.bundle, report.rejected, report.cause) == ("bundle-1", None, "host.blocking_call")
    assert {line.cpu_pressure_ms for line in report.windows} == {None}
    text = "\n".join(lines_of(report, Style()))
    assert "host_stall (host.blocking_call), strong" in text
    assert "It moved what it is judged by" in text
    again = report.model_copy(update={"rejected": "the injector did nothing"})
    assert "Rejected: the injector did nothing." in "\n".join(lines_of(again, Style()))


def test_the_verb_serves_the_model_and_the_mix_that_were_asked_for(
    service: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lab", "run", "--fault", "host_stall", "--severity", "strong", "--seed", "3", "--requests", "12"]
    kept = tmp_path / "life"
    served = ["--engine", "vllm", "--model", "deep", "--mix", "chat"]
    assert main([*words, *served, "--keep", str(kept), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["fault"], report["cause"], report["rejected"]) == ("host_stall", "host.blocking_call", None)
    about = json.loads((kept / "life.json").read_text())
    assert (about["engine"], about["model"], about["load"]) == ("vllm", "deep", "chat")
    assert main([*words, *served, "--keep", str(kept)]) == 2
    assert "it is no empty folder" in capsys.readouterr().err
    assert main([*words, *served, "--keep", str(kept / "life.json")]) == 2
    assert "it is no empty folder" in capsys.readouterr().err
    assert main([*words, "--model", "gigantic"]) == 2


def test_the_first_requests_of_a_life_are_beside_the_same_ones_later_on(service: Made, tmp_path: Path) -> None:
    asked = [("host_stall", "strong"), ("warm_up", "strong")]
    start, block = run_life(Setup("transformers"), 3, asked, tmp_path / "life", told, mix="chat", requests=24)
    (truth,) = start.strikes
    assert (truth.fault, truth.cause, truth.rejected) == ("warm_up", None, None)
    assert truth.moved["ttft"].median == pytest.approx(7.0, rel=0.1)
    assert [window.strike for window in start.windows] == [0, HEALTHY, HEALTHY]
    assert len({len(window.requests) for window in start.windows}) == 1
    assert [strike.fault for strike in block.strikes] == ["host_stall"]
    assert json.loads((tmp_path / "life" / "life.json").read_text())["load"] == "chat"


def test_a_life_starts_once(service: Made, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="strike at its start"):
        run_life(Setup("vllm"), 3, [("warm_up", "strong")] * 2, tmp_path / "life", told, requests=24)


def test_a_new_beginning_is_judged_by_those_who_compute_it(service: Made, tmp_path: Path) -> None:
    ((strike,),) = [
        block.strikes
        for block in run_life(Setup("vllm"), 3, [("cold_cache", "strong")], tmp_path / "life", told, requests=24)
    ]
    assert {ratio.pairs for ratio in strike.moved.values()} == {2 * 4}  # two new beginnings, four rounds
