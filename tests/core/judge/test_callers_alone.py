"""Requests of which callers' records are all there is: what is left out for them would have said nothing."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.records import ClientRecord, FileRead, Recording
from teller_core.data.steps import Mapping
from teller_core.data.table import UNKNOWN, take
from teller_core.judge import holds, life
from teller_core.judge.assess import assess
from teller_core.judge.claims import LEAST_NS
from teller_core.judge.diagnose import diagnose_all, judge
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.rules import OF_STEPS, RULES
from teller_core.judge.scene import scene
from teller_core.rebuild.capture import rebuild
from tests.core.judge.captured import TRIMMED, rebuilt
from tests.core.judge.serving import Ask, Trouble, serve

MS = 1_000_000


def called(at: int, *, first: int, gap: int, tokens: int) -> ClientRecord:
    """A request sent at ``at`` ms whose tokens came ``first`` ms later and then every ``gap`` ms."""
    times = [(at + first + i * gap) * MS for i in range(tokens)]
    return ClientRecord(f"run0-{at}", at * MS, times[-1], times, 100, tokens, clock="local")


def alone(clients: list[ClientRecord]) -> Case:
    """A capture of nothing but what callers recorded."""
    capture = rebuild(
        Recording(files=[FileRead("b.json", "bench_results", 1)], clients=clients), [], capture_id="0a", name="b"
    )
    return prepare(capture, assess(capture))


def without_steps(folder: Path | None) -> Case:
    """A capture, served here or recorded, whose requests have lost their steps and what the server knew of them."""
    troubles = [Trouble("gc", 300, 700, 40, 3)]
    capture, numbers = serve([Ask(at * 60) for at in range(20)], troubles) if folder is None else rebuilt(folder)
    blind = take(capture.participation, np.zeros(len(capture.participation.step), np.bool_))
    lost = np.full(len(capture.requests.number), UNKNOWN)
    requests = replace(capture.requests, received=lost, queued=lost, scheduled=lost, queue_ns=lost)
    return prepare(replace(capture, participation=blind, requests=requests), numbers)


def test_what_stands_for_no_steps_is_what_no_steps_give() -> None:
    case = alone([called(at, first=50, gap=20, tokens=9) for at in range(0, 1000, 100)])
    given = life._own(case, case.rows[:0])  # pyright: ignore[reportPrivateUsage] -- the two are to be one
    for field in fields(given):
        mine, theirs = getattr(life._NONE, field.name), getattr(given, field.name)  # pyright: ignore[reportPrivateUsage]
        assert np.array_equal(mine, theirs)
        assert getattr(mine, "dtype", None) == getattr(theirs, "dtype", None)
    raw = holds._Raw(*(np.empty(0, np.int64) for _ in holds._Raw._fields))  # pyright: ignore[reportPrivateUsage]
    charged = holds._charged(case, raw, (0, 0))  # pyright: ignore[reportPrivateUsage]
    for field in fields(charged):
        mine, theirs = getattr(holds.NOTHING, field.name), getattr(charged, field.name)
        assert np.array_equal(mine, theirs)
        assert getattr(mine, "dtype", None) == getattr(theirs, "dtype", None)


@pytest.mark.parametrize("folder", [None, *sorted(path for path in TRIMMED.iterdir() if path.is_dir())], ids=str)
def test_rules_that_are_not_asked_without_steps_would_have_said_nothing(folder: Path | None) -> None:
    case = without_steps(folder)
    for request in range(len(case.capture.requests.number)):
        view = scene(case, request, "e2e")
        assert view.life.mapping == Mapping.UNKNOWN
        assert not len(view.holds.step)
        for key in OF_STEPS:
            clue = RULES[key](view)
            assert clue is None or clue.ns < LEAST_NS, key


def test_decoding_is_told_as_the_caller_saw_it_and_the_phases_sum() -> None:
    case = alone([called(at, first=50, gap=20, tokens=9) for at in range(0, 1000, 100)])
    for request in range(10):
        answer = judge(case, request)
        told = {part.part: part.ns for part in answer.phases}
        assert told["decode"] == 8 * 20 * MS
        assert told["unexplained"] == 50 * MS
        assert sum(ns or 0 for ns in told.values()) == 210 * MS


def test_a_request_that_took_thrice_what_its_peers_took_stands_out() -> None:
    clients = [called(at, first=50, gap=60 if at == 500 else 20, tokens=9) for at in range(0, 1000, 100)]
    case = alone(clients)
    answers = diagnose_all(case.capture, case.assessment)
    assert [answer.verdict for answer in answers].count("could_not_tell") == 1
    assert answers[5].over_work is not None
    assert answers[5].over_work > 2


def test_an_arrival_without_an_end_is_told_as_such() -> None:
    clients = [ClientRecord(f"line{at}", at * MS, UNKNOWN, (), 100, 10, clock="local") for at in range(9)]
    case = alone(clients)
    for answer in diagnose_all(case.capture, case.assessment):
        assert answer.value_ms is None
        assert answer.verdict == "could_not_tell"
        assert answer.reason == "because e2e was not recorded"
