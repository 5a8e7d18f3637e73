"""The tail of a fleet on a page: two bars cut by phase, what stands out, and what to ask next."""

from pathlib import Path

import numpy as np

from teller_core.fleet import fleet
from teller_core.store.store import Store
from teller_core.tell.fleet_page import GLYPHS
from teller_core.tell.layout import Style
from teller_core.tell.text import page
from tests.core.fleet_made import drawn, keep

WIDE, NARROW = Style(width=100), Style(width=80, unicode=False)


def test_a_tail_is_drawn_beside_the_middle_with_what_each_phase_adds(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        for at in range(4):
            keep(
                store,
                f"0{at}" * 8,
                drawn(at, 100, queue=60 if at == 3 else 1),
                cause=["host.gc_pause" if at == 3 else ""] * 100,
            )
        report = fleet(store)
    shown = page(report, WIDE)
    lines = shown.splitlines()
    assert lines[0] == "TAIL EXPLAINED  400 requests of 4 captures"
    assert lines[1] == "from 2026-11-30 11:01:39 to 2026-11-30 12:01:39"
    middle, tail = (next(line for line in lines if line.strip().startswith(side)) for side in ("middle ", "tail "))
    drawn_of = [sum(letter in GLYPHS for letter in line) for line in (middle, tail)]
    assert report.middle is not None
    assert report.tail is not None
    assert abs(drawn_of[0] / drawn_of[1] - report.middle.mean_ms / report.tail.mean_ms) < 0.05
    assert max(map(len, lines)) <= 100
    assert any(line.lstrip(GLYPHS + " ").startswith("queue") and "%" in line for line in lines)
    assert "1 of 4 replicas stands out" in shown
    assert "Of the causes named" in shown
    assert f"Ask why: teller why {report.examples[0].request} --capture {'03' * 6}" in shown
    narrow = page(report, NARROW)
    assert narrow.isascii()
    assert max(map(len, narrow.splitlines())) <= 80


def test_what_could_not_be_told_is_said_without_a_picture(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        keep(store, "0a", drawn(1, 20))
        shown = page(fleet(store), WIDE)
    assert shown.splitlines()[0].startswith("COULD NOT TELL  20 requests of 1 capture")
    assert "20 requests measured are too few" in shown
    assert not set(GLYPHS) & set(shown)


def test_names_of_captures_and_hosts_stay_data(tmp_path: Path) -> None:
    hostile = "\x1b[31mevil\u202e"
    with Store.open(tmp_path / "t.db") as store:
        for at in range(2):
            keep(store, f"0{at}" * 8, drawn(at, 100), host=f"{hostile}{at}", finish_reason=[hostile] * 100)
        report = fleet(store)
    shown = page(report, WIDE) + report.model_dump_json()
    assert "\x1b" not in shown
    assert "\\u001b" not in shown
    assert "\u202e" not in shown


def test_several_services_and_what_was_left_out_are_said(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        keep(store, "0a", drawn(1, 100), model="tiny")
        keep(store, "0b", drawn(2, 100), model="large", prompt_tokens=np.arange(100, dtype=np.int32))
        keep(store, "0c", drawn(3, 100), began=5)
        shown = " ".join(page(fleet(store), WIDE).split())
    assert "Captures left out: 1 without dates." in shown
    assert "vllm-1-large (1), vllm-1-tiny (1)" in shown
