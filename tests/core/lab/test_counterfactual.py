"""A service under two limits, over one that is made up: who gets what in which order, and what the truth says."""

import json
import random
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from teller_core.cli import main
from teller_core.errors import InputError, TellerError
from teller_core.lab import counterfactual
from teller_core.lab.blocks import HEALTHY, Strike, Window
from teller_core.lab.counterfactual import AFTER, BEFORE, Asked, ran, rerun
from teller_core.lab.lifting import limited
from teller_core.lab.lifting.limited import Foretold
from teller_core.lab.lifting.pairs import Sums
from teller_core.lab.load import Ask, append
from teller_core.lab.serving import Setup

MS = 1_000_000
ASKED = Asked(Setup(), "chunk", 256, seed=5, requests=4)


class Made:
    """A service that answers at once; with steps of few tokens, a request takes half as long."""

    def __init__(self) -> None:
        self.started = 0
        self.sent: list[tuple[int | None, int, tuple[str, ...]]] = []
        self.others: list[tuple[Ask, ...]] = []
        self.dies_after: int | None = None
        self.own = 2048
        self.ended = False

    @contextmanager
    def served(self, setup: Setup, start: Path, bundle: Path, progress: object) -> Generator[Any]:
        bundle.mkdir()
        self.started += 1
        folder = bundle / "folder"
        folder.mkdir()
        service = SimpleNamespace(folder=bundle)
        yield SimpleNamespace(setup=setup, service=service, folder=folder, provides=(), ended=lambda: self.ended)

    def window(
        self,
        place: tuple[int, int, bool],
        strike: Strike | None,
        asks: tuple[Sequence[Ask], Sequence[Ask]],
        *,
        chance: random.Random,
        live: Any,
    ) -> tuple[Window, list[dict[str, Any]]]:
        own, others = asks
        chunk = json.loads((live.folder / "limits").read_text()).get("chunk")
        if chunk is not None and chunk < self.own:
            with (live.folder / "log").open("a") as log:
                log.write("7 limited chunk\n")
        self.others.append(tuple(others))
        names = [f"{chance.getrandbits(32):08x}" for _ in own]
        self.sent.append((chunk, place[0], tuple(names)))
        if self.dies_after is not None and len(self.sent) > self.dies_after:
            raise TellerError("The lab's service", "it answers no request any more", "Read server.log in its bundle")
        rows: list[dict[str, Any]] = []
        for name, ask in zip(names, own, strict=True):
            step = (5 if chunk is None else 2.5) * MS * (1 + 0.05 * random.Random(name).random())
            times = [round(step * (number + 1)) for number in range(ask.output)]
            rows.append({"rid": name, "start_ns": 0, "end_ns": times[-1], "tok_ns": times, "err": None})
        append(live.service.folder / "client.jsonl", rows)
        return Window(place[0], place[1], False, 0, 1, names, [], 0, {}, []), rows


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Made:
    made = Made()
    monkeypatch.setattr(counterfactual, "served", made.served)
    monkeypatch.setattr(counterfactual, "run_window", made.window)
    monkeypatch.setattr(counterfactual, "program", lambda engine, vllm: Path("engine"))
    monkeypatch.setattr(counterfactual, "PAUSE_S", 0.0)
    return made


def told(_: str) -> None:
    pass


def test_one_service_is_limited_and_not_in_an_order_of_chance_and_gets_other_prompts_each_time(
    services: Made, tmp_path: Path
) -> None:
    truth = rerun(ASKED, tmp_path / "it", told)
    assert services.started == 2
    assert Counter((one.arm, one.start) for one in truth.windows) == {
        (arm, start): 6 for arm in (BEFORE, AFTER) for start in range(2)
    }
    names = [names for _, _, names in services.sent]
    assert set(Counter(names).values()) == {1}
    orders = {tuple(chunk for chunk, _, _ in services.sent[at : at + 2]) for at in range(0, len(services.sent), 2)}
    assert orders == {(None, 256), (256, None)}


def test_an_engine_whose_own_limit_is_no_larger_is_refused(
    services: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.own = 128
    monkeypatch.setattr(counterfactual, "TOLD_S", 0.0)
    with pytest.raises(InputError, match="own chunk is no larger"):
        rerun(ASKED, tmp_path / "it", told)


def test_a_service_that_ends_before_it_takes_a_limit_is_not_said_to_have_none(services: Made, tmp_path: Path) -> None:
    services.own, services.ended = 128, True
    with pytest.raises(TellerError, match="it ended"):
        rerun(ASKED, tmp_path / "it", told)


def test_the_truth_has_each_request_and_all_of_them(services: Made, tmp_path: Path) -> None:
    truth = rerun(ASKED, tmp_path / "it", told)
    assert truth.moved["e2e"].median == pytest.approx(0.5, rel=0.02)
    assert [each.place for each in truth.requests] == [0, 1, 2, 3]
    for each in truth.requests:
        assert len(each.names) == 12
        assert each.latencies["e2e"].ratio.pairs == 12
        assert each.latencies["e2e"].ratio.high < 0.55
        assert each.latencies["e2e"].saved == pytest.approx(each.latencies["e2e"].before / 2, rel=0.1)
    kept = json.loads((tmp_path / "it" / "truth.json").read_text())
    assert kept["asked"]["after"] == 256
    assert {one["bundle"] for one in kept["windows"]} == {"bundle-1", "bundle-2"}


def test_what_ended_early_goes_on_with_the_starts_that_are_missing(services: Made, tmp_path: Path) -> None:
    services.dies_after = 16
    with pytest.raises(TellerError, match="answers no request"):
        rerun(ASKED, tmp_path / "it", told, starts=2)
    assert {one.start for one in ran(tmp_path / "it")} == {0}
    services.dies_after = None
    truth = rerun(ASKED, tmp_path / "it", told, starts=2)
    assert {one.bundle for one in truth.windows} == {"bundle-1", "bundle-3"}
    again = services.started
    assert rerun(ASKED, tmp_path / "it", told, starts=2).requests == truth.requests
    assert services.started == again
    with pytest.raises(InputError, match="another one"):
        rerun(replace(ASKED, seed=6), tmp_path / "it", told)


def test_a_fault_may_be_there_before_and_after(services: Made, tmp_path: Path) -> None:
    strike = Strike("long_prefill", "strong", {"share_percent": 100, "words": 900, "output": 4})
    truth = rerun(replace(ASKED, strike=strike), tmp_path / "it", told, starts=1)
    assert {one.window.strike for one in truth.windows} == {0}
    assert len({*services.others}) == 1  # the same ones in all windows
    assert len(services.others[0]) == 4
    assert {one.window.strike for one in rerun(ASKED, tmp_path / "calm", told, starts=1).windows} == {HEALTHY}
    rank = Strike("late_rank", "strong", {"ms": 20.0})
    with pytest.raises(InputError, match="needs a second rank"):
        rerun(replace(ASKED, strike=rank), tmp_path / "rank", told)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"what": "model"}, "none of chunk, seats"),
        ({"what": "seats", "after": 8}, "seats is 8 already"),
        ({"after": 4}, "room for 8 requests"),
        ({"setup": Setup("transformers"), "what": "seats", "after": 4}, "has no such limit"),
        ({"setup": Setup("transformers"), "after": 512}, "chunk is 512 already"),
        ({"strike": Strike("warm_up", "strong", {"requests": 8})}, "cannot be done in every window"),
        ({"strike": Strike("prefix_cache_miss", "strong", {"words": 400})}, "cannot be done in every window"),
        ({"setup": Setup("transformers"), "strike": Strike("grammar_compile", "strong", {})}, "cannot be done"),
    ],
)
def test_what_cannot_be_compared_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        replace(ASKED, **change)


def test_the_answer_says_it_to_a_person(
    services: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told_before = Foretold(0, BEFORE, "e2e", Sums(4, 4e8, -1e8, 0.0, -0.9e8, 0.0, -2e8), 1e7, "")
    silent = replace(told_before, arm=AFTER, silent="its batches are not reproduced")
    one_round = replace(told_before, latency="ttft", noise=None)
    monkeypatch.setattr(limited, "foretold", lambda truth, folder: [told_before, one_round, silent])
    words = ["lab", "rerun", str(tmp_path / "it"), "--chunk", "256", "--requests", "4", "--fault", "long_prefill"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "chunk 256 instead of the engine's own; vllm under long_prefill, strong, seed 0" in out
    assert "2 starts, " in out
    assert "before   e2e              4    100.0 ms    -25.0 ms    2.5 ms    -22.5 ms    10%       100%     100%" in out
    assert "before   ttft             4    100.0 ms    -25.0 ms         -    -22.5 ms      -          -        -" in out
    assert "Nothing after the change: its batches are not reproduced." in out
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (line,) = [line for line in report["moved"] if line["latency"] == "e2e"]
    assert (line["faster"], line["slower"], line["undecided"], line["pairs"]) == (4, 0, 0, 48)
    assert line["saved_ms"] > 0
    monkeypatch.setattr(limited, "foretold", lambda truth, folder: [silent])
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "Nothing after the change" in out and "own steps" not in out  # no head of a table without lines
    assert main(["lab", "rerun", str(tmp_path / "it")]) == 2
    assert main([*words, "--seats", "4"]) == 2
    assert "not allowed with" in capsys.readouterr().err
