"""``learn``: which captures teach what is usual, which are refused, and what answers say of it afterwards."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller_core import learning
from teller_core.answers import why
from teller_core.baselines import not_used, stored_service, usual_for
from teller_core.data.capture import Capture
from teller_core.data.learned import FORMAT, Learned
from teller_core.data.report_learned import LearnedReport
from teller_core.errors import InputError, StoreError, UnknownName
from teller_core.judge.assess import assess
from teller_core.judge.diagnose import diagnose_all
from teller_core.learning import forget, learn, learned
from teller_core.store.learned import LearnedRow
from teller_core.store.store import Store
from teller_core.tell.explain import explain
from teller_core.tell.layout import Style
from teller_core.tell.summary import capture_report
from teller_core.tell.text import page
from tests.core.judge.serving import Trouble
from tests.core.judge.test_learning import ALWAYS, ASKS, recorded, taught

ROOT = Path(__file__).parents[2]
SLOW = Trouble("starved", 0, ALWAYS, 6)
CALLED = "vllm-0.32.0-tiny"


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    with Store.open(tmp_path / "t.db") as opened:
        yield opened


def keep(store: Store, identity: str, capture: Capture) -> str:
    """Store a capture as an import does, held against what is learned of its service."""
    from teller_core.baselines import capture_service

    capture = replace(capture, id=identity * 32)
    usual = usual_for(store, capture_service(capture))
    numbers = assess(capture, usual)
    report = capture_report(capture, already_known=False, imported_at="2026-11-29T12:00:00Z", findings=[])
    store.save(capture, numbers, [explain(each) for each in diagnose_all(capture, numbers)], report)
    return capture.id


def only(store: Store) -> LearnedReport:
    (one,) = learned(store).learned
    return one


def test_what_was_learned_is_kept_listed_and_told(store: Store) -> None:
    keep(store, "0a", recorded())
    keep(store, "0b", recorded(asks=ASKS[10:]))
    report = learn(store, ["0a", "last", "0b"])
    assert only(store) == report.learned[0]
    one = report.learned[0]
    assert one.name == CALLED and one.requests == 110 and one.captures == ["0a" * 6, "0b" * 6] and not one.stale
    assert one.service == {"engine": "vllm", "version": "0.32.0", "model": "tiny", "path": "tiny"} | {
        "tensor_parallel": "1",
        "ranks": "1",
    }
    told = page(report, Style(80))
    assert told.startswith(CALLED) and "110 requests" in told
    assert forget(store, CALLED).learned == []
    assert page(learned(store), Style()).startswith("Nothing is learned yet")


def test_what_was_learned_is_read_back_as_it_was(store: Store) -> None:
    given = taught(recorded(Trouble("gc", 400, 2000, 80, 5)))
    store.keep_learned(given)
    found = store.learned(given.name)
    assert plain(found) == plain(given) and "host.gc_pause" in found.claims.cause


def plain(learned: Learned) -> dict[str, Any]:
    assert learned.step_costs is not None
    return {
        "named": (learned.name, learned.service, learned.learned_at, learned.captures, learned.requests, learned.steps),
        "steps": (learned.step_costs.costs.cost.tolist(), learned.step_costs.shift, learned.step_costs.costs.peers),
        "requests": {name: (costs.used, costs.inverse.tolist()) for name, costs in learned.request_costs.items()},
        "levels": (dict(learned.levels), dict(learned.rest)),
        "claims": (learned.claims.cause, learned.claims.rate.tolist(), learned.claims.share.tolist()),
        "operators": (learned.operators.name, learned.operators.median.tolist()),
    }


def test_answers_about_the_same_service_are_held_against_it_and_say_so(store: Store) -> None:
    before = keep(store, "0c", recorded(SLOW))
    keep(store, "0a", recorded())
    assert why(store, "30", capture=before).reference == "" and not why(store, "30", capture=before).findings
    learn(store, ["0a"])
    after = keep(store, "0d", recorded(SLOW, asks=ASKS[5:]))
    for identity in (before, after):
        said = why(store, "30", capture=identity)
        assert said.reference.startswith(f"the baseline {CALLED} of 20") and (said.over_work or 0) > 1.5
        assert said.findings[0].cause == "host.cpu_starvation"
        assert f"held against the baseline {CALLED}" in page(said, Style(200))
    assert why(store, "30", capture=before, metric="ttft").reference
    healthy = why(store, "30", capture="0a")
    assert healthy.verdict == "normal" and f"the baseline {CALLED}" in healthy.reason
    forget(store, CALLED)
    for identity in (before, after):
        said = why(store, "20", capture=identity)
        assert said.reference == "" and not said.findings


def test_a_baseline_of_another_service_is_not_used_and_refused_by_name(store: Store) -> None:
    keep(store, "0a", recorded())
    learn(store, ["0a"], name="monday")
    newer, other = keep(store, "0b", recorded(version="0.33.0")), keep(store, "0c", recorded(model="large"))
    said = why(store, "30", capture=newer)
    assert said.reference == ""
    assert "the baseline monday is not used: its version of the engine is not the same" in said.not_seen
    assert not any("monday" in line for line in why(store, "30", capture=other).not_seen)
    with pytest.raises(InputError, match=r"the baseline monday: it is of another service: its model is not the same"):
        why(store, "30", capture=other, against="monday")
    with pytest.raises(UnknownName, match="none has this name"):
        why(store, "30", capture=newer, against="tuesday")


def test_where_the_model_was_not_recorded_somebody_has_to_say_that_it_is_the_same(store: Store) -> None:
    keep(store, "0a", recorded())
    learn(store, ["0a"], name="monday")
    unsaid = keep(store, "0b", serve_without_lines())
    said = why(store, "30", capture=unsaid)
    assert said.reference == ""
    assert "the baseline monday is not used: whether it is of this model was not recorded" in said.not_seen
    assert why(store, "30", capture=unsaid, against="monday").verdict == "normal"


def test_of_many_baselines_that_are_not_used_the_newest_are_named() -> None:
    service = {"engine": "vllm"}
    rows = [LearnedRow(f"week{at}", service, f"2026-11-{at + 10}T00:00:00+00:00", FORMAT) for at in range(9)]
    *named, rest = not_used(rows, service)
    assert [line.split()[2] for line in named] == ["week8", "week7", "week6"]
    assert rest == "6 older baselines are not used either" and len(not_used(rows[:4], service)) == 4


def serve_without_lines() -> Capture:
    whole = recorded()
    from teller_core.data.table import take

    return replace(whole, lines=take(whole.lines, np.zeros(1, np.bool_)))


def test_what_another_version_learned_is_stale(store: Store) -> None:
    keep(store, "0a", recorded())
    learn(store, ["0a"], name="monday")
    con = store._con  # pyright: ignore[reportPrivateUsage]
    con.execute("UPDATE learned SET format = ?", (FORMAT + 1,))
    assert only(store).stale and only(store).requests is None
    assert "Not used" in page(learned(store), Style(80))
    assert usual_for(store, stored_service(store, "0a" * 32)) is None
    assert "the baseline monday is not used: another version of TELLER learned it" in why(store, "3").not_seen
    with pytest.raises(StoreError, match="another version of TELLER learned it"):
        why(store, "3", against="monday")
    learn(store, ["0a"], name="monday")
    assert not only(store).stale


def test_a_capture_that_is_not_healthy_is_refused_with_its_requests(store: Store) -> None:
    keep(store, "0a", recorded(Trouble("gc", 400, 2000, 80, 5)))
    struck = store.claimed("0a" * 32)
    assert len(struck) > 6
    shown = ", ".join(map(str, sorted(struck)[:8]))
    with pytest.raises(InputError, match=rf"does not look healthy: {len(struck)} of its 60 .*host.gc_pause.*{shown}"):
        learn(store, ["0a"])
    assert learned(store).learned == []
    claims = learn(store, ["0a"], healthy=True).learned[0].claims
    assert "host.gc_pause" in [claim.cause for claim in claims]


def test_a_capture_that_is_too_small_is_refused_with_what_it_takes(store: Store) -> None:
    keep(store, "0a", recorded(asks=ASKS[:30]))
    with pytest.raises(InputError, match=r"30 of the requests .* and it takes 40"):
        learn(store, ["0a"])
    keep(store, "0b", recorded(asks=ASKS[30:]))
    assert learn(store, ["0a", "0b"]).learned[0].requests == 60


def test_captures_of_which_the_model_is_not_known_are_no_others(store: Store) -> None:
    keep(store, "0a", serve_without_lines())
    keep(store, "0b", recorded())
    keep(store, "0c", serve_without_lines())
    with pytest.raises(InputError, match="whether they are of one service was not recorded: no model is named in them"):
        learn(store, ["0a", "0b", "0c"])
    with pytest.raises(InputError, match="the captures are of 2 services"):
        learn(store, ["0a", "0b"], name="monday")
    report = learn(store, ["0a", "0c"], name="vllm")
    assert [(one.name, one.requests) for one in report.learned] == [("vllm", 120)]
    assert "teller why 42 --against vllm" in page(report, Style(200))
    assert [(one.name, one.requests) for one in learn(store, ["0b"]).learned] == [(CALLED, 60)]


def test_a_baseline_takes_the_place_of_one_that_may_be_of_another_service_only_where_somebody_says_it_is_the_same(
    store: Store,
) -> None:
    keep(store, "0a", serve_without_lines())
    keep(store, "0b", serve_without_lines())
    learn(store, ["0a"])
    with pytest.raises(InputError, match=r"the baseline vllm: there is one, and whether .* with --as vllm, or choose"):
        learn(store, ["0b"])
    assert only(store).captures == ["0a" * 6]
    learn(store, ["0b"], name="vllm")
    assert only(store).captures == ["0b" * 6]


def test_services_are_kept_apart(store: Store) -> None:
    keep(store, "0a", recorded())
    keep(store, "0b", recorded(model="large"))
    with pytest.raises(InputError, match="the captures are of 2 services: 0a0a0a0a0a0a; 0b0b0b0b0b0b"):
        learn(store, ["0a", "0b"], name="monday")
    assert [one.name for one in learn(store, ["0a", "0b"]).learned] == [CALLED, "vllm-0.32.0-large"]
    with pytest.raises(InputError, match="there is one of another service, whose model is not the same"):
        learn(store, ["0b"], name=CALLED)


def test_a_number_that_tells_services_apart_takes_no_name_of_another(store: Store) -> None:
    for identity, dtype in (("0a", "float32"), ("0b", "float16"), ("0c", "int8")):
        keep(store, identity, recorded(dtype=dtype))
    assert [one.name for one in learn(store, ["0a", "0b"]).learned] == [f"{CALLED}-1", f"{CALLED}-2"]
    with pytest.raises(InputError, match="there is one of another service, whose number format is not the same"):
        learn(store, ["0b", "0c"])
    assert learned(store).learned[0].service["dtype"] == "float32"


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 65, "\x1b[31m"])
def test_a_name_that_could_be_taken_for_something_else_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="no name of a baseline"):
        learn(store, ["last"], name=name)


def test_what_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(UnknownName, match="nothing has been imported yet"):
        learn(store, ["last"])
    with pytest.raises(UnknownName, match="none has this name"):
        forget(store, "monday")


ENDLESS = """
import sys
from dataclasses import replace
from pathlib import Path
from teller_core.store.store import Store

with Store.open(Path(sys.argv[1])) as store:
    one = store.learned(sys.argv[2])
    for turn in range(int(sys.argv[3])):
        store.keep_learned(replace(one, name=sys.argv[4], requests=turn))
        print(turn, flush=True)
"""


def learning_beside(store: Store, turns: int, name: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", ENDLESS, str(store.path), "monday", str(turns), name]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_two_that_learn_at_once_are_both_heard(store: Store) -> None:
    store.keep_learned(replace(taught(recorded()), name="monday"))
    both = [learning_beside(store, 20, name) for name in ("left", "right")]
    assert [each.wait(60) for each in both] == [0, 0]
    for each in both:
        assert each.stdout is not None
        each.stdout.close()
    assert {row.name: store.learned(row.name).requests for row in store.learned_rows()} == {
        "left": 19,
        "right": 19,
        "monday": 60,
    }


def while_it_learns(monkeypatch: pytest.MonkeyPatch, path: Path, capture: str) -> None:
    """Whoever learns next finds, when it is done, that somebody has learned ``monday`` from ``capture`` meanwhile."""
    made = learning.learned_from

    def beside(*given: Any) -> Learned:
        monkeypatch.setattr(learning, "learned_from", made)
        with Store.open(path) as other:
            learn(other, [capture], name="monday")
        return made(*given)

    monkeypatch.setattr(learning, "learned_from", beside)


def test_of_two_services_that_learn_one_name_at_once_the_second_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for identity, dtype in (("0a", "float32"), ("0b", "float16")):
        keep(store, identity, recorded(dtype=dtype))
    while_it_learns(monkeypatch, store.path, "0a")
    with pytest.raises(InputError, match="another service, whose number format is not the same"):
        learn(store, ["0b"], name="monday")
    assert only(store).service["dtype"] == "float32"


@pytest.mark.parametrize("known", [False, True])
def test_of_two_that_learn_one_service_at_once_the_first_stands_and_the_second_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    for identity, asks in (("0a", ASKS), ("0b", ASKS[10:])):
        keep(store, identity, recorded(asks=asks))
    if known:
        learn(store, ["0b"], name="monday")
    while_it_learns(monkeypatch, store.path, "0a")
    with pytest.raises(InputError, match="the baseline monday: somebody else learned it meanwhile, and theirs stands"):
        learn(store, ["0b"], name="monday")
    assert only(store).captures == ["0a" * 6]
    learn(store, ["0b"], name="monday")
    assert only(store).captures == ["0b" * 6]


def test_services_whose_long_names_get_numbers_are_forgotten_by_name(store: Store) -> None:
    for identity, dtype in (("0a", "float32"), ("0b", "float16")):
        keep(store, identity, recorded(dtype=dtype, model="m" * 100))
    for one in learn(store, ["0a", "0b"]).learned:
        assert learning.NAME.fullmatch(one.name)
        assert one.name not in [left.name for left in forget(store, one.name).learned]


def test_killed_while_it_learns_leaves_the_old_or_the_new(store: Store) -> None:
    store.keep_learned(replace(taught(recorded()), name="monday"))
    for turns in (1, 3, 7):
        process = learning_beside(store, 100_000, "monday")
        assert process.stdout is not None
        seen = -1
        while seen < turns:
            seen = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
        seen = max([seen, *map(int, process.stdout.read().split())])
        process.stdout.close()
        assert store.learned("monday").requests in (seen, seen + 1)
