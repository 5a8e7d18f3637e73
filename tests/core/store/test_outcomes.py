"""How each request went is kept as rows, the same whether it was stored as it is now or before there were such rows."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np

from teller_core.data.outcomes import Outcomes
from teller_core.data.parts import PHASES
from teller_core.data.report import Part
from teller_core.data.steps import Lines
from teller_core.data.table import UNKNOWN
from teller_core.store import outcomes
from teller_core.store.store import Store
from tests.core.store.made import answer_of, assessment_of, capture_of, differences, filled, report_of

BEGAN = 1_796_000_000_000_000_000


def stored(path: Path) -> Outcomes:
    """A capture with an answer of a cause, one of none, one without phases; and none of the last request."""
    capture = capture_of("0a", requests=4)
    requests = replace(
        capture.requests,
        client_start=BEGAN + np.arange(4) * 10,
        prompt_tokens=np.array([100, 200, 300, 400], np.int32),
        finish_reason=["stop", "length", "", ""],
    )
    lines = filled(
        Lines, 1, rule=["vllm.version"], fields=['{"version": "0.32.0", "model": "/models/tiny"}'], untrusted_text=[""]
    )
    capture = replace(capture, requests=requests, lines=lines)
    phases = [Part(part=phase, ns=None if at == 0 else 10 * at, source="") for at, phase in enumerate(PHASES)]
    cause = answer_of("0a", 1).model_copy(update={"phases": phases})
    typical = answer_of("0a", 2).model_copy(update={"phases": phases, "verdict": "typical_here", "findings": []})
    dark = answer_of("0a", 3).model_copy(update={"phases": [], "verdict": "could_not_tell", "findings": []})
    with Store.open(path) as store:
        store.save(capture, assessment_of({"e2e": [1, 2, 777, 4]}), [cause, typical, dark], report_of(capture))
        return store.rows("0a", Outcomes)


def test_a_row_an_answer_has_when_it_began_what_was_named_and_phases_that_sum_to_its_value(tmp_path: Path) -> None:
    table = stored(tmp_path / "t.db")
    assert table.request.tolist() == [1, 2, 3]
    assert table.began.tolist() == [BEGAN, BEGAN + 10, BEGAN + 20]
    assert (table.cause, table.rank.tolist()) == (["host.gc_pause", "", ""], [0, -1, -1])
    assert table.value.tolist() == [660, 660, 777]
    assert table.prompt_tokens.tolist() == [100, 200, 300]
    assert table.finish_reason == ["stop", "length", ""]
    phases = table.phases()
    assert phases["before_server"].tolist() == [UNKNOWN] * 3  # nobody recorded it: no zero
    assert phases["queue"].tolist() == [20, 20, UNKNOWN]
    assert phases["unexplained"].tolist() == [110, 110, 777]  # what has no phases is all unexplained
    known = [np.where(ns == UNKNOWN, 0, ns) for ns in phases.values()]
    assert np.array_equal(sum(known), table.value)


def test_what_was_stored_before_gets_the_same_rows_dates_and_service(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    now = stored(path)
    con = sqlite3.connect(path)
    told = con.execute("SELECT service, began, ended FROM captures").fetchall()
    service = '{"engine": "vllm", "version": "0.32.0", "model": "tiny", "path": "/models/tiny", "ranks": "1"}'
    assert told == [(service, BEGAN, BEGAN + 20)]
    con.execute("DELETE FROM outcomes")
    con.execute("UPDATE captures SET service = '', began = NULL, ended = NULL")
    outcomes.fill(con)
    assert con.execute("SELECT service, began, ended FROM captures").fetchall() == told
    con.commit()
    con.close()
    with Store.open(path) as store:
        assert differences(store.rows("0a", Outcomes), now) == []


def test_an_answer_that_is_damaged_leaves_the_others_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    stored(path)
    con = sqlite3.connect(path)
    con.execute("UPDATE answers SET report = x'00' WHERE request = 2")
    con.execute("DELETE FROM outcomes")
    outcomes.fill(con)
    assert con.execute("SELECT request FROM outcomes ORDER BY request").fetchall() == [(1,), (3,)]
    con.close()
