"""Whom a fault strikes: one process, the workers of all ranks, one rank alone, the link; and what is told of it."""

import json
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from teller_core.lab import inside, striking
from teller_core.lab.injectors import injector
from teller_core.lab.link import Conditions
from teller_core.lab.outside import Process
from teller_core.lab.serving import Live, Setup
from teller_core.lab.striking import struck

PIDS = {"front_end": 11, "engine": 12, "worker": 13, "worker_1": 14}


class Groups:
    """Which pids a quota held, and how much of a processor they got."""

    def __init__(self) -> None:
        self.held: list[tuple[int, float]] = []

    @contextmanager
    def quota(self, pid: int, knobs: Mapping[str, float]) -> Generator[None]:
        self.held.append((pid, knobs["percent"]))
        yield

    def throttled(self, pid: int) -> int:
        return pid


class Wire:
    """A link that only says what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[Conditions] = []

    @contextmanager
    def during(self, conditions: Conditions) -> Generator[int]:
        self.asked.append(conditions)
        yield 5
        self.asked.append(Conditions())


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    monkeypatch.setattr(striking, "LEAD_S", 0.0)
    monkeypatch.setattr(striking, "READY_S", 0.0)
    service: Any = SimpleNamespace(process=SimpleNamespace(poll=lambda: None))
    processes = {role: Process(pid, pid) for role, pid in PIDS.items()}
    groups: Any = Groups()
    link: Any = Wire()
    target: Any = None
    return Live(Setup(ranks=2), service, target, tmp_path, processes, groups, (), tmp_path, link=link)


@pytest.mark.parametrize(
    ("fault", "held"),
    [("worker_quota", [13, 14]), ("rank_quota", [14]), ("engine_quota", [12]), ("front_end_quota", [11])],
)
def test_a_quota_holds_the_workers_of_all_ranks_or_the_one_process_that_is_meant(
    live: Live, fault: str, held: list[int]
) -> None:
    with struck(injector(fault), {"percent": 30}, live):
        pass
    assert isinstance(live.groups, Groups)
    assert live.groups.held == [(pid, 30) for pid in held]


def test_the_link_does_it_during_the_window_alone(live: Live) -> None:
    with struck(injector("link_delay"), {"delay_ms": 3.0, "jitter_ms": 0.5}, live) as what:
        pass
    assert isinstance(live.link, Wire)
    assert live.link.asked == [Conditions(delay_ms=3.0, jitter_ms=0.5), Conditions()]
    assert 0 < what.begin <= what.end
    assert what.delays == []
    with struck(None, {}, live):
        pass
    assert len(live.link.asked) == 2


@pytest.mark.parametrize("fault", [None, "cpu_colocation", "link_delay"])
def test_a_window_begins_as_long_after_it_was_asked_for_whatever_is_done_in_it(
    live: Live, monkeypatch: pytest.MonkeyPatch, fault: str | None
) -> None:
    monkeypatch.setattr(striking, "READY_S", 0.3)
    one = None if fault is None else injector(fault)
    knobs = {} if one is None else {name: ranges["clear"][0] for name, ranges in one.knobs.items()}
    asked = time.time_ns()
    with struck(one, knobs, live) as what:
        pass
    assert 300_000_000 <= what.begin - asked < 1_000_000_000


@pytest.mark.parametrize(("fault", "pids"), [("late_rank", [14]), ("host_stall", [13, 14])])
def test_whoever_is_struck_inside_is_waited_for_and_his_words_are_the_truth(
    live: Live, fault: str, pids: list[int]
) -> None:
    asked: list[dict[str, Any]] = []
    log = live.folder / "log"

    def answer() -> None:
        """Two workers that do what is asked, and say so once it is over."""
        late = time.monotonic() + 20
        while time.monotonic() < late and not (asked and asked[-1]["until"]):
            time.sleep(0.001)
            given = json.loads((live.folder / "control").read_text() or "{}")
            if given and (not asked or given["until"]):
                asked.append(given)
                word = "off" if given["until"] else "on"
                did = "".join(f"{pid} did {110 + pid} {130 + pid}\n" for pid in pids if word == "off")
                said = "".join(f"{pid} {word} {200 if word == 'off' else 100 + pid}\n" for pid in (13, 14))
                with log.open("a") as file:
                    file.write(did + said)

    inside.ask(live.folder, {})
    answering = threading.Thread(target=answer)
    answering.start()
    before = time.time_ns()
    with struck(injector(fault), {"ms": 1.0}, live) as what:
        pass
    answering.join()
    assert asked[0]["rank"] == injector(fault).rank
    assert before <= what.begin <= what.end
    assert what.delays == [(110 + pids[0], 130 + pids[-1], 20 + pids[-1] - pids[0])]


def test_what_the_machine_did_meanwhile_is_told_of_all_ranks(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([1, 2, 5, 9])
    monkeypatch.setattr(striking.outside, "waited", lambda _: next(counts))
    monkeypatch.setattr(striking.outside, "waits_of", no_waits)
    with struck(None, {}, live) as what:
        pass
    assert what.noise["worker_run_queue_wait_ns"] == (5 + 9) - (1 + 2)
    assert what.noise["throttled_ns"] == 0


@contextmanager
def no_waits(tasks: object) -> Generator[list[object]]:
    yield []
