"""Which baseline an answer is held against, and that it is held against no other: what was stored, learned anew or is damaged."""

import json
import sqlite3
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from teller_core.answers import list_captures, slow, why
from teller_core.baselines import stored_service, usual_for
from teller_core.data.learned import called
from teller_core.data.service import service_of, told, unlike, vouched
from teller_core.errors import InputError, StoreError
from teller_core.learning import forget, learn, learned
from teller_core.store import learned as rows_of_learned
from teller_core.store.store import Store
from teller_core.tell.layout import Style
from teller_core.tell.text import page
from tests.core.judge.test_learning import ASKS, recorded, taught
from tests.core.test_learning import CALLED, SLOW, keep, only


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    with Store.open(tmp_path / "t.db") as opened:
        yield opened


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
    assert unlike(named("./llama"), named("llama/")) == [] and unlike(one, named("/srv/llama"))
    assert "meta/llama" in told(one) and "path" not in told(named("llama"))
    assert unlike(one, named("meta/qwen")) == ["model"]
    long = named("a" * 100 + "/x"), named("a" * 101 + "/x")
    assert unlike(*long) == ["path of the model"] and max(map(len, long[0].values())) <= 64


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


def test_a_store_that_may_only_be_read_has_the_same_answers(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as made:
        keep(made, "0a", recorded())
        learn(made, ["0a"])
    with Store.open(tmp_path / "t.db", read_only=True) as opened:
        assert why(opened, "30").reference and slow(opened).note
