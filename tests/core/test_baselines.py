"""Which baseline an answer is held against, and that it is held against no other: what was stored, learned anew or is damaged."""

import json
import sqlite3
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from teller_core import sheets
from teller_core.answers import compare, explain_operator, list_captures, slow, why
from teller_core.baselines import stored_service, usual_for
from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.learned import called
from teller_core.data.service import service_of, told, unlike, vouched
from teller_core.data.table import columns
from teller_core.data.trace import Layer
from teller_core.errors import InputError, StoreError
from teller_core.judge.assess import assess
from teller_core.learning import forget, learn, learned
from teller_core.sheets import held
from teller_core.store import learned as rows_of_learned
from teller_core.store.store import Store
from teller_core.tell.layout import Style
from teller_core.tell.text import page
from tests.core.judge.service import Rows
from tests.core.judge.test_learning import ASKS, recorded, taught
from tests.core.test_learning import CALLED, SLOW, keep, only

MS = 1_000_000


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    with Store.open(tmp_path / "t.db") as opened:
        yield opened


def profiled(capture: Capture, more: float = 0.0) -> Capture:
    """``capture`` with two operators in every step, of which the second takes ``more`` ms than it does in health."""
    tree, first, last = Rows(), [], []
    for begin, stop in zip(capture.work.start.tolist(), capture.work.stop.tolist(), strict=True):
        first.append(tree.open("execute_model", Layer.ENGINE, begin))
        tree.leaf("aten::mm", Layer.OPERATOR, begin + MS // 10, 2 * MS)
        tree.leaf("aten::silu", Layer.OPERATOR, begin + 2 * MS + MS // 5, int((1.5 + more) * MS))
        tree.close(stop)
        last.append(len(tree.start))
    work = replace(capture.work, row=np.array(first, np.int32), row_stop=np.array(last, np.int32))
    return replace(capture, work=work, ranks=[replace(capture.ranks[0], tree=tree.tree())])


def sick_and_healthy() -> tuple[Capture, Capture]:
    """The same service twice, once with an operator that takes four times as long in all steps."""
    return profiled(recorded(SLOW), SLOW.extra), profiled(recorded())


def same(one: Assessment, other: Assessment) -> bool:
    """Whether the operators of both are held against the same."""
    return plain(one.candidates) == plain(other.candidates) and plain(one.baselines) == plain(other.baselines)


def plain(table: Any) -> str:
    return repr({name: np.asarray(column).tolist() for name, column in columns(table).items()})


def test_operators_are_held_against_what_the_rest_of_an_answer_is(store: Store) -> None:
    sick, healthy = sick_and_healthy()
    before = keep(store, "0b", sick)
    keep(store, "0a", healthy)
    learn(store, ["0a"], healthy=True)
    after = keep(store, "0c", sick)
    usual = store.learned(CALLED)
    own, against = assess(sick), assess(sick, usual)
    assert "aten::silu" in against.candidates.name and not same(own, against)
    for identity in (before, after):
        assert same(held(store, store.capture(identity), usual), against)
        assert same(held(store, store.capture(identity), None), own)
        assert not any(line.startswith("operators:") for line in why(store, "30", capture=identity).not_seen)
    learn(store, ["0a", "0c"], name=CALLED, healthy=True)
    other = store.learned(CALLED)
    assert same(held(store, store.capture(after), other), assess(sick, other))


def test_a_profile_is_read_once_for_each_reference_that_answers_are_held_against(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sick, healthy = sick_and_healthy()
    before = keep(store, "0b", sick)
    keep(store, "0a", healthy)
    learn(store, ["0a"], healthy=True)
    reads: list[str] = []
    whole = sheets.with_profiles
    monkeypatch.setattr(
        sheets, "with_profiles", lambda store, capture: reads.append(capture.id) or whole(store, capture)
    )
    said = [why(store, number, capture=before) for number in ("30", "30", "31")]
    assert reads == [before] and said[0] == said[1] and said[2].reference == said[0].reference != ""
    usual = store.learned(CALLED)
    assert same(held(store, store.capture(before), usual), assess(sick, usual)) and reads == [before]
    learn(store, ["0a", "0b"], name=CALLED, healthy=True)
    reads.clear()
    again = store.learned(CALLED)
    for _ in range(2):
        assert same(held(store, store.capture(before), again), assess(sick, again)) and reads == [before]


def test_a_store_that_somebody_writes_to_answers_as_well_and_keeps_nothing(store: Store) -> None:
    sick, healthy = sick_and_healthy()
    before = keep(store, "0b", sick)
    keep(store, "0a", healthy)
    learn(store, ["0a"], healthy=True)
    usual = store.learned(CALLED)
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert same(held(store, store.capture(before), usual), assess(sick, usual))
    assert store.held(before, usual.called) is None


def test_operators_that_cannot_be_held_against_the_same_are_left_out_and_it_is_said(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sick, healthy = sick_and_healthy()
    keep(store, "0a", healthy)
    learn(store, ["0a"], healthy=True)
    after = keep(store, "0c", sick)
    usual = store.learned(CALLED).called
    forget(store, CALLED)
    monkeypatch.setattr(sheets, "MOST_HELD", 1)
    numbers = held(store, store.capture(after), None)
    assert not numbers.candidates.name and not numbers.baselines.name and numbers.reference == ""
    said = why(store, "30", capture=after)
    assert said.reference == ""
    assert [line for line in said.not_seen if line.startswith(f"operators: they were held against {usual} at import")]
    assert "held against at import" in explain_operator(store, "aten::silu", capture=after).note


def test_what_a_capture_does_is_told_by_itself_whatever_it_was_held_against(store: Store) -> None:
    sick, healthy = sick_and_healthy()
    keep(store, "0a", healthy)
    learn(store, ["0a"], healthy=True)
    keep(store, "0c", sick)
    slower = explain_operator(store, "aten::silu", capture="0c").places[0]
    usual = explain_operator(store, "aten::silu", capture="0a").places[0]
    assert slower.median_ms > usual.median_ms + 5
    assert any("aten::silu" in one.what for one in compare(store, "0a", "0c").differences)


def test_a_list_says_what_its_verdicts_were_held_against_and_what_stands_now(store: Store) -> None:
    before = keep(store, "0b", recorded(SLOW))
    assert "at import" not in slow(store, capture=before).note
    assert list_captures(store).note == ""
    learn(store, ["0b"], healthy=True)
    first = store.learned(CALLED).called
    said = slow(store, capture=before)
    assert "made at import, held against the capture itself" in said.note
    assert f"`why` holds each request against {first}" in said.note
    after = keep(store, "0c", recorded(SLOW, asks=ASKS[5:]))
    assert f"are held against {first}." in slow(store, capture=after).note
    learn(store, ["0b"], healthy=True)
    assert f"held against {first}, which is gone or replaced" in slow(store, capture=after).note
    forget(store, CALLED)
    listed = list_captures(store)
    assert [one.reference for one in listed.captures] == [first, ""] and "learned or forgotten since" in listed.note
    assert f"held against {first} at import" in page(listed, Style(400)) and listed.note in page(listed, Style(400))


def test_two_that_were_learned_in_one_second_are_two(store: Store) -> None:
    assert called("monday", "2026-11-30T12:00:00.123+00:00") == "the baseline monday of 2026-11-30 12:00:00.123"
    assert called("monday", "2026-11-30T12:00:00+00:00") == "the baseline monday of 2026-11-30 12:00:00"
    keep(store, "0a", recorded())
    learn(store, ["0a"])
    assert len(only(store).learned_at) == len("2026-11-30T12:00:00.123+00:00")


def named(model: str) -> dict[str, str]:
    lines = recorded().lines
    return service_of("vllm", replace(lines, fields=[json.dumps({"version": "1", "model": model})]), [])


def test_models_of_one_name_in_two_places_are_two() -> None:
    one, other = named("meta/llama"), named("mine/llama")
    assert one["model"] == other["model"] == "llama" and unlike(one, other) == ["path of the model"]
    assert unlike(named("./llama"), named("llama/")) == [] and unlike(one, named("/opt/llama"))
    assert "meta/llama" in told(one) and "path" not in told(named("llama"))
    assert unlike(one, named("meta/qwen")) == ["model"]
    long = named("a" * 100 + "/x"), named("a" * 101 + "/x")
    assert unlike(*long) == ["path of the model"] and max(map(len, long[0].values())) <= 64


@pytest.mark.parametrize("model", ["/", "///", " ", "/ /"])
def test_a_model_without_a_name_is_not_recorded(model: str) -> None:
    assert "model" not in named(model) and "path" not in named(model) and not vouched(named(model), named(model))


def test_a_model_whose_long_name_is_no_text_is_called_by_what_it_is() -> None:
    one, other = named("\ud800" * 100), named("\ud801" * 100)
    assert unlike(one, one) == [] and unlike(one, other)


def test_a_baseline_of_before_paths_were_kept_is_used(store: Store) -> None:
    keep(store, "0a", recorded())
    old = {name: value for name, value in stored_service(store, "0a" * 32).items() if name != "path"}
    assert vouched(old, named("meta/tiny")) and unlike(old, {**old, "path": "meta/tiny"}) == []
    store.keep_learned(replace(taught(recorded()), service=old))
    assert why(store, "30").reference


def test_a_model_that_lies_elsewhere_is_the_same_where_somebody_says_so(store: Store) -> None:
    keep(store, "0a", recorded())
    learn(store, ["0a"], name="monday")
    moved = keep(store, "0b", recorded(model="../srv/tiny"))
    said = why(store, "30", capture=moved)
    assert (
        said.reference == ""
        and "the baseline monday is not used: its path of the model is not the same" in said.not_seen
    )
    assert why(store, "30", capture=moved, against="monday").reference
    with pytest.raises(InputError, match="another service, whose path of the model is not the same"):
        learn(store, ["0b"], name="monday")


def test_what_is_forgotten_while_an_answer_is_made_is_used_or_not_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(store, "0a", recorded())
    learn(store, ["0a"])
    read = rows_of_learned.read_rows
    with Store.open(store.path) as other:

        def forgotten(con: sqlite3.Connection) -> Any:
            found = read(con)
            if found and con.in_transaction:
                other.forget_learned(CALLED)
            return found

        monkeypatch.setattr(rows_of_learned, "read_rows", forgotten)
        found = usual_for(store, stored_service(store, "0a" * 32))
    assert found is not None and found.name == CALLED
    assert why(store, "30").reference == "" and learned(store).learned == []


def packed(body: Any) -> bytes:
    return zstandard.ZstdCompressor().compress(body if isinstance(body, bytes) else json.dumps(body).encode())


def body_of(store: Store) -> dict[str, Any]:
    con = store._con  # pyright: ignore[reportPrivateUsage]
    (body,) = con.execute("SELECT body FROM learned").fetchone()
    return json.loads(zstandard.ZstdDecompressor().decompress(body))


def spoil(store: Store, column: str, value: Any) -> None:
    con = store._con  # pyright: ignore[reportPrivateUsage]
    con.execute(f"UPDATE learned SET {column} = ?", (value,))


SPOILED = ["{", "null", "[1]", '{"engine": 3}', "[" * 100_000, None, 7, b"\xff"]
BODIES = [b"no frame", packed([]), packed(None), packed({"name": 1}), packed(b"[" * 100_000), None, 7, "text"]
WRONG = {
    "levels": {"turnaround": "long"},
    "rest": [1],
    "request_costs": {"e2e": {"used": [], "cost": [None], "spread": 1, "inverse": [1], "peers": 1}},
    "claims": {"cause": [3], "rate": [1], "share": [1]},
    "captures": "abc",
    "service": {"engine": None},
    "operators": {},
    "step_costs": [1],
}


def check_refused(store: Store, *, whole: bool = True) -> None:
    """That it is said what is damaged and what to do, and that this helps."""
    match = (
        rf"the baseline {CALLED}: what the store has of it is damaged\. Forget it, with `learn` --forget, and learn it"
    )
    for ask in (lambda: why(store, "30"), lambda: why(store, "30", against=CALLED)):
        with pytest.raises(StoreError, match=match):
            ask()
    if whole:
        with pytest.raises(StoreError, match=match):
            slow(store)
    assert "damaged" in only(store).stale and "damaged" in page(learned(store), Style(80))
    assert forget(store, CALLED).learned == []
    assert why(store, "30").reference == ""


@pytest.mark.parametrize("service", SPOILED)
def test_a_damaged_service_is_refused_with_what_to_do(store: Store, service: Any) -> None:
    keep(store, "0a", recorded())
    learn(store, ["0a"])
    spoil(store, "service", service)
    check_refused(store)


@pytest.mark.parametrize("body", BODIES)
def test_damaged_numbers_are_refused_with_what_to_do(store: Store, body: Any) -> None:
    keep(store, "0a", recorded())
    learn(store, ["0a"])
    spoil(store, "body", body)
    check_refused(store, whole=False)


@pytest.mark.parametrize("part", WRONG)
def test_numbers_that_are_none_are_refused_with_what_to_do(store: Store, part: str) -> None:
    keep(store, "0a", recorded())
    learn(store, ["0a"])
    spoil(store, "body", packed({**body_of(store), part: WRONG[part]}))
    check_refused(store, whole=False)


def test_what_was_learned_before_metrics_were_told_apart_is_read_as_of_the_time_from_end_to_end(store: Store) -> None:
    keep(store, "0a", recorded())
    learn(store, ["0a"])
    body = body_of(store)
    body["claims"] = {"cause": ["host.gc_pause"], "rate": [0.5], "share": [0.25]}
    spoil(store, "body", packed(body))
    spoil(store, "format", 1)
    found = store.learned(CALLED)
    assert found.claims.of("host.gc_pause", "e2e") == (0.5, 0.25) and found.claims.of("host.gc_pause", "ttft") == (
        0.0,
        0.0,
    )
    assert why(store, "30").reference == found.called and not only(store).stale


def test_a_store_that_may_only_be_read_has_the_same_answers(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as made:
        keep(made, "0a", recorded())
        learn(made, ["0a"])
    with Store.open(tmp_path / "t.db", read_only=True) as opened:
        assert why(opened, "30").reference and slow(opened).note
