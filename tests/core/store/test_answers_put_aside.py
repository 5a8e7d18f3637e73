"""Answers are kept as they are made: on disk, without holding the store, and all or none."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from teller_core.data.report import WhyReport
from teller_core.store.store import Store
from tests.core.store.made import answer_of, assessment_of, capture_of, report_of


def tables(store: Store) -> set[str]:
    """Temporary tables that are still there."""
    return {name for (name,) in store._con.execute("SELECT name FROM sqlite_temp_master")}  # pyright: ignore[reportPrivateUsage]


def test_others_may_write_while_answers_are_still_made(tmp_path: Path) -> None:
    capture, other = capture_of("0a"), capture_of("0b")

    def made() -> Iterator[WhyReport]:
        yield answer_of("0a", 1)
        with Store.open(tmp_path / "t.db") as second:
            assert second.save(other, assessment_of({}), [answer_of("0b", 2)], report_of(other))
        yield answer_of("0a", 2)

    with Store.open(tmp_path / "t.db") as store:
        assert store.save(capture, assessment_of({}), made(), report_of(capture))
        assert [store.answer("0a", number) for number in (1, 2)] == [answer_of("0a", 1), answer_of("0a", 2)]
        assert (store.answer("0b", 1), store.answer("0b", 2)) == (None, answer_of("0b", 2))
        assert not tables(store)


def test_a_failure_between_answers_leaves_nothing(tmp_path: Path) -> None:
    capture = capture_of("0a")

    def made() -> Iterator[WhyReport]:
        yield answer_of("0a", 1)
        raise KeyboardInterrupt

    with Store.open(tmp_path / "t.db") as store:
        with pytest.raises(KeyboardInterrupt):
            store.save(capture, assessment_of({}), made(), report_of(capture))
        assert not store.knows("0a")
        assert not tables(store)
        assert store.save(capture, assessment_of({}), [answer_of("0a", 3)], report_of(capture))
        assert store.answer("0a", 1) is None


def test_memory_does_not_grow_with_the_number_of_answers(tmp_path: Path) -> None:
    def peak(answers: int) -> int:
        name = f"{answers:04x}"
        capture = capture_of(name)
        with Store.open(tmp_path / f"{name}.db") as store:
            store.save(capture, assessment_of({}), [answer_of(name, 1)], report_of(capture))
            again = capture_of(name + "0")
            said = (answer_of(name + "0", number) for number in range(answers))
            tracemalloc.start()
            store.save(again, assessment_of({}), said, report_of(again))
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return most

    assert peak(3000) < 1.5 * peak(600)
