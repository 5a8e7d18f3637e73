"""A store that refuses what takes too long."""

from pathlib import Path

import pytest

from teller_core.errors import StoreError
from teller_core.store.store import Store


def test_a_question_past_its_deadline_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.open(tmp_path / "t.db").close()
    monkeypatch.setattr("teller_core.store.guard.STEPS_BETWEEN_LOOKS", 1)
    with (
        pytest.raises(StoreError, match="the question took too long"),
        Store.open(tmp_path / "t.db", read_only=True, deadline_s=-1.0) as store,
    ):
        store.captures()
    with Store.open(tmp_path / "t.db", read_only=True, deadline_s=60.0) as store:
        assert store.captures() == []
