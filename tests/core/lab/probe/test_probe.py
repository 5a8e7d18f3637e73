"""The probe finds what gives faults away, and takes nothing for that which differs between lives, or by chance."""

import argparse
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.cli.lab import VERBS
from teller_core.errors import InputError
from teller_core.lab.probe import expected, probe, telling
from teller_core.lab.probe.expected import Expected
from teller_core.lab.probe.probe import STRUCK, WHICH, Verdict, matrix, probed
from teller_core.lab.probe.telling import better, lines_of
from teller_core.lab.probe.views import VIEWS
from teller_core.lab.probe.windows import HARD, Seen

pytest.importorskip("sklearn", reason="needs the lab extra")

CAUSES = ("host.gc_pause", "host.io_stall", "host.blocking_call", HARD)


def lives(told: str, count: int = 8) -> list[Seen]:
    """Lives of four faults in four rounds, two healthy windows in each. ``told``: by what windows are given away."""
    chance = np.random.default_rng(5)
    found: list[Seen] = []
    for life in range(count):
        for number in range(4):
            for strike in chance.permutation([-1, -1, 0, 1, 2, 3]).tolist():
                cause = CAUSES[(strike + life) % 4] if strike >= 0 else ""
                bag = {"noise": float(chance.normal(life, 1)), f"coin {chance.integers(3)}": 1.0, "always": 1.0}
                if (told == "struck" and strike >= 0) or (told == "which" and cause == "host.io_stall"):
                    bag["line fsync took long"] = 1.0
                if told == "life":
                    bag[f"of life {life}"] = float(strike >= 0) if life == 0 else 1.0
                found.append(Seen(f"life-{life}", number, strike, cause, {"lines": bag}))
    return found


def verdicts(told: str) -> dict[str, Verdict]:
    return {one.question: one for one in probed(lives(told), "lines")}


def test_windows_that_only_differ_by_chance_and_by_life_tell_nothing() -> None:
    for told in ("nothing", "life"):
        found = verdicts(told)
        assert not any(better(one, 2) for one in found.values())
        assert found[STRUCK].chance == pytest.approx(0.5, abs=0.02)
        assert found[WHICH].chance == pytest.approx(0.25, abs=0.03)


def test_a_line_of_every_struck_window_tells_that_it_was_struck() -> None:
    found = verdicts("struck")
    assert found[STRUCK].reached > 0.9 and better(found[STRUCK], 2) and not better(found[WHICH], 2)
    assert found[STRUCK].telling[0] == "line fsync took long"
    assert (found[STRUCK].windows, found[WHICH].windows, found[STRUCK].lives) == (8 * 24, 8 * 16, 8)


def test_a_line_of_one_fault_tells_which_it_is() -> None:
    found = verdicts("which")
    assert better(found[WHICH], 2) and found[WHICH].reached > 0.3
    assert "line fsync took long" in found[WHICH].telling


def test_what_is_expected_to_tell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Expected("lines", re.compile("line fsync.*"), "a disk that stalls is written about")
    monkeypatch.setattr(expected, "EXPECTED", (rule,))
    assert "line fsync took long" not in matrix(lives("struck"), "lines")[0]
    assert not any(better(one, 2) for one in verdicts("struck").values())


def test_what_stands_everywhere_or_nearly_nowhere_is_no_feature() -> None:
    windows = lives("nothing")
    names, value = matrix(windows, "lines")
    assert set(names) == {"noise", "coin 0", "coin 1", "coin 2"} and value.shape == (len(windows), 4)


def test_one_life_or_no_feature_is_asked_nothing() -> None:
    assert probed(lives("struck", 1), "lines") == []
    assert probed([window for window in lives("struck") if window.strike > 99], "lines") == []


def test_equal_scores_share_the_mean_of_their_places() -> None:
    assert probe._ranks(np.array([2.0, 1.0, 2.0, 5.0])).tolist() == [2.5, 1.0, 2.5, 4.0]


def test_the_table_says_what_leads_those_that_do_better_than_chance() -> None:
    leak = Verdict("lines", STRUCK, 100, 8, 0.91, 0.5, 0.0002, ["line \x1b[31m'x'"])
    calm = Verdict("order", WHICH, 60, 8, 0.11, 0.1, 0.4, ["round 3"])
    text = "\n".join(lines_of([leak, calm]))
    assert text.count("better than chance") == 1 and "\x1b" not in text and "round 3" not in text


def test_every_view_is_asked_of_every_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = {name: lives("struck") for name in VIEWS}
    monkeypatch.setattr(telling, "lives", lambda folder: [f"life-{at}" for at in range(8)])
    monkeypatch.setattr(
        telling,
        "windows_of",
        lambda life: [
            replace(one, bags=dict.fromkeys(VIEWS, one.bags["lines"])) for one in windows["lines"] if one.life == life
        ],
    )
    found = telling.leaks(tmp_path, lambda text: None)
    assert [(one.view, one.question) for one in found] == [(view, each) for view in VIEWS for each in (STRUCK, WHICH)]
    assert all(better(one, len(found)) == (one.question == STRUCK) for one in found)


def test_the_verb_needs_lives_and_has_no_json(tmp_path: Path) -> None:
    given = argparse.Namespace(action="leaks", lives=tmp_path, replayed=None, json=True)
    with pytest.raises(InputError, match="its table is text"):
        VERBS["lab"](given, lambda: None)
    with pytest.raises(InputError, match="0 lives are packed"):
        VERBS["lab"](argparse.Namespace(**{**vars(given), "json": False}), lambda: None)
