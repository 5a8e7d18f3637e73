"""A few profiled steps of a window of the lab: of every worker, of the same moment, whole when the block is left."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from teller_core.collect.bundle import events, record
from teller_core.data.table import UNKNOWN
from teller_core.errors import TellerError
from teller_core.lab import load, profiling
from teller_core.lab.outside import Process
from teller_core.lab.profiling import profiled, warm
from tests.core.collect.test_shim_windows import ENGINE
from tests.waiting import until

MS = 1_000_000


class Made:
    """Two workers that do what the control file asks, a moment after it is there; ``say``: what each writes then."""

    def __init__(self, folder: Path) -> None:
        (folder / "cap").mkdir(parents=True)
        self.folder = folder
        self.words: list[str] = []
        self.closed = 0
        self.status: int | None = None

    def live(self) -> Any:
        service = SimpleNamespace(cap=self.folder / "cap", process=SimpleNamespace(poll=lambda: self.status))
        processes = {"front_end": Process(7, 7), "worker": Process(8, 8), "worker_1": Process(9, 9)}
        return SimpleNamespace(service=service, processes=processes, target=load.Target(1, "tiny"))

    def say(self, pid: int, name: str, *, segment: str = "", **fields: Any) -> None:
        with (self.folder / "cap" / f"host-{pid}{segment}.jsonl").open("a") as file:
            file.write(json.dumps({"ph": "I", "tid": pid, "name": name, **fields}) + "\n")

    @contextmanager
    def obeying(self, answers: Sequence[Callable[[], None]]) -> Generator[None]:
        """Give the first of ``answers`` when a window is asked for, and the next when it is closed."""
        path, over = self.folder / "cap" / "PROFILE", threading.Event()

        def obey() -> None:
            for answer, there in zip(answers, (True, False), strict=False):
                while path.exists() is not there and not over.is_set():
                    time.sleep(0.001)
                if there and not over.is_set():
                    self.words.append(path.read_text())
                answer()

        thread = threading.Thread(target=obey)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def test_what_is_told_is_of_this_window_and_of_all_workers(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.say(8, "profile_start", t=5, cost=1)
    made.say(8, "profile_stop", t=9, cost=1, steps=40, events=9)

    def opened() -> None:
        made.say(8, "profile_start", t=100 * MS, cost=3 * MS)
        made.say(9, "profile_start", t=101 * MS, cost=1 * MS, segment="-0002")
        made.say(7, "profile_refused", t=101 * MS, reason="no steps run here")
        made.say(8, "profile_stop", t=160 * MS, cost=2 * MS, beside=20 * MS, steps=4, events=2_000, begin=1)

    def closed() -> None:
        made.say(9, "profile_stop", t=170 * MS, cost=1 * MS, beside=9 * MS, steps=3, events=1_500, begin=1)

    with made.obeying((opened, closed)), profiled(made.live()) as found:
        assert found.begin == UNKNOWN
    assert (found.begin, found.end, found.stall) == (97 * MS, 170 * MS, 5 * MS)
    assert (found.steps, found.events) == (3, 3_500)
    assert not (tmp_path / "cap" / "PROFILE").exists()


def test_the_same_is_asked_of_all_recordings_and_says_nothing_of_what_is_done(tmp_path: Path) -> None:
    made, second = Made(tmp_path / "one"), Made(tmp_path / "two")

    def written() -> None:
        for pid, of in ((8, made), (9, second)):
            of.say(pid, "profile_start", t=50, cost=1)
            of.say(pid, "profile_stop", t=60, cost=1, steps=2, events=10)

    before = time.time_ns()
    with second.obeying(()), made.obeying((written,)), profiled(made.live(), others=[second.live().service], steps=2):
        words = (tmp_path / "two" / "cap" / "PROFILE").read_text()
    assert [words] == made.words
    seconds, steps, at, reason = words.split()
    assert (seconds, steps, reason) == ("10", "steps=2", "reason=call")
    assert 0.4 < (int(at.removeprefix("at=")) - before) / 1e9 < 2.0


@pytest.mark.parametrize(("last", "fields"), [("profile_lost", {"cost": 3}), ("profile_refused", {"reason": "x"})])
def test_a_worker_that_leaves_no_trace_is_an_error(tmp_path: Path, last: str, fields: Mapping[str, Any]) -> None:
    made = Made(tmp_path)

    def written() -> None:
        made.say(8, "profile_start", t=50, cost=1)
        made.say(8, "profile_stop", t=60, cost=1, steps=2, events=10)
        made.say(9, last, t=60, **fields)

    with pytest.raises(TellerError, match="no trace"), made.obeying((written,)), profiled(made.live()):
        pass


def test_a_service_that_ended_and_one_that_does_not_answer_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path)
    made.status = -9
    with pytest.raises(TellerError, match="did not answer"), profiled(made.live()):
        pass
    monkeypatch.setattr(profiling, "WRITTEN_S", 0.0)
    made.status = None
    with pytest.raises(TellerError, match="did not answer"), profiled(made.live()):
        pass
    assert not (tmp_path / "cap" / "PROFILE").exists()


def test_what_goes_wrong_in_the_block_is_what_is_raised(tmp_path: Path) -> None:
    with pytest.raises(KeyError), profiled(Made(tmp_path).live()):
        raise KeyError
    assert not (tmp_path / "cap" / "PROFILE").exists()


def test_the_first_window_of_a_life_has_requests_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, sent = Made(tmp_path), list[load.Ask]()

    def written() -> None:
        for pid in (8, 9):
            made.say(pid, "profile_start", t=50, cost=1)
            made.say(pid, "profile_stop", t=60, cost=1, steps=2, events=10)

    def send(target: load.Target, asks: Sequence[load.Ask], *rest: object) -> list[dict[str, Any]]:
        sent.extend(asks)
        return [{"rid": ask.rid} for ask in asks]

    monkeypatch.setattr(load, "send", send)
    with made.obeying((written,)):
        rows = warm(made.live())
    assert [row["rid"] for row in rows] == [ask.rid for ask in sent]
    assert sent[0].at == 0.0
    assert sent[-1].at > profiling.AFTER_S


TWO_WORKERS = """
import os, sys, time
import torch
from vllm.v1.worker.gpu_worker import Worker
child = os.fork()
while True:
    Worker().execute_model(7)
    time.sleep(0.001)
"""


@pytest.mark.slow
def test_two_workers_profile_the_same_moment_and_as_many_steps_as_asked(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for name, text in ENGINE.items():
        path = tmp_path / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    variables = {"OMP_NUM_THREADS": "1"}
    with record(
        [sys.executable, "-c", TWO_WORKERS], tmp_path / "bundle", variables, import_first=[tmp_path / "lib"]
    ) as service:
        until(lambda: len([*service.cap.glob("host-*.jsonl")]) > 1, service.process)
        pids = sorted(int(path.stem.split("-")[1]) for path in service.cap.glob("host-*.jsonl"))
        live: Any = SimpleNamespace(
            service=service, processes={"worker": Process(pids[0], pids[0]), "worker_1": Process(pids[1], pids[1])}
        )
        with profiled(live, steps=3) as found:
            until(lambda: len(events(service.cap, "profile_stop")) == 2, service.process)
        assert found.steps == 3
        starts = [event["t"] - event["cost"] for event in events(service.cap, "profile_start")]
        assert max(starts) - min(starts) < 200 * MS
        assert found.begin == min(starts)
        assert os.listdir(service.cap).count("PROFILE") == 0
