"""Two methods on the same draws of lives: what is kept is read again, and differences are told where chance cannot make them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.errors import FormatError, InputError, UnknownName
from teller_core.lab.evaluation import results
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.figure import Figure
from teller_core.lab.evaluation.method import CAUSE, TYPICAL, Claim, Judged, nothing
from teller_core.lab.evaluation.metrics import figures
from teller_core.lab.evaluation.paired import Kept, differences, lines_of, read, truth_of, written
from teller_core.lab.evaluation.results import compare
from teller_core.lab.evaluation.rows import Rows, rows_of
from teller_core.lab.evaluation.summary import Table, summary
from tests.core.lab.evaluation.made import side

LIVES = side(range(7))


def rows(right: float) -> Rows:
    """Of a method that names the cause of so many of the struck requests of each life; some lives are harder for everybody."""

    def said(at: int, one: Episode) -> Judged:
        chance = np.random.default_rng(at)
        hard = 0.08 * int(one.life[-1])
        told = [
            [Claim(cause, 1.0)] if cause not in ("", "?") and chance.random() < right - hard else []
            for cause in one.labels.request
        ]
        return replace(
            nothing(one.seen.capture),
            causes=told,
            verdict=[CAUSE if mine else TYPICAL for mine in told],
            step_score=(one.labels.step == 1).astype(np.float64),
        )

    return rows_of(LIVES, [said(at, one) for at, one in enumerate(LIVES)])


def kept(right: float) -> Kept:
    given = rows(right)
    return read(written(figures(given), given), "x.T4.drawn.txt")


def test_what_is_kept_is_read_again() -> None:
    given = rows(0.9)
    told = {figure.key: figure for figure in figures(given)}
    again = read(written([*told.values()], given), "x.T4.drawn.txt")
    assert [*again.figures] == ["request.top_1"]  # too few lives for steps at a prior of 1 %, and no operator
    one, figure = again.figures["request.top_1"], told["request.top_1"]
    assert one.value == pytest.approx(figure.value, abs=1e-4) and one.draws == pytest.approx(figure.drawn, abs=1e-4)
    assert np.percentile(one.draws, (2.5, 97.5)) == pytest.approx((figure.low, figure.high), abs=1e-4)
    holed = Figure("request.top_1", 0.5, 0.4, 0.6, 40, 1, drawn=(0.5, float("nan"), 0.6))
    draws = read(written([holed], given), "x.T4.drawn.txt").figures["request.top_1"].draws
    assert np.isnan(draws).tolist() == [False, True, False]


def test_a_difference_that_every_draw_has_is_told_though_intervals_overlap() -> None:
    better, worse = kept(0.95), kept(0.85)
    one, other = better.figures["request.top_1"], worse.figures["request.top_1"]
    assert np.percentile(one.draws, 2.5) < np.percentile(other.draws, 97.5)
    (found,) = differences(better, worse)
    assert found.value == pytest.approx(one.value - other.value) and found.low <= found.value <= found.high
    assert found.low > 0.0 and found.sure
    (back,) = differences(worse, better)
    assert (back.value, back.low, back.high) == pytest.approx((-found.value, -found.high, -found.low))
    (same,) = differences(better, better)
    assert (same.value, same.low, same.high, same.sure) == (0.0, 0.0, 0.0, False)


def test_methods_that_were_judged_on_other_lives_are_not_compared() -> None:
    given = rows(0.9)
    fewer = rows_of(LIVES[:-1], [nothing(one.seen.capture) for one in LIVES[:-1]])
    assert truth_of(given) == truth_of(rows(0.1)) != truth_of(fewer)
    foreign = Kept(truth_of(fewer), kept(0.9).figures)
    assert differences(kept(0.9), foreign) == []
    assert "other lives were judged" in lines_of("a", "b", 4, [])[-1]


@pytest.mark.parametrize("line", ["request.top_1", "request.top_1 7 x", "request.top_1 0.5 7"])
def test_a_file_of_draws_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(FormatError, match="holds no draws"):
        read(f"head 12\n{line}\n", "x.T4.drawn.txt")


def test_two_methods_are_held_against_each_other_by_what_is_kept(tmp_path: Path) -> None:
    into = tmp_path / results.RESULTS
    into.mkdir()
    for name, right in (("ours", 0.95), ("paper", 0.6), ("kde", 0.5)):
        given = rows(right)
        (into / f"{name}.T4.drawn.txt").write_text(written(figures(given), given))
    (text,) = compare("ours", "paper", tmp_path, (3, 4))
    first, _, line = text.splitlines()
    assert first.startswith("ours less paper at T4") and line.startswith("request.top_1") and line.endswith(" *")
    assert len(compare("all", "paper", tmp_path, (4,))) == 2
    with pytest.raises(InputError, match="is not kept of both"):
        compare("ours", "zscore", tmp_path, (4,))
    with pytest.raises(UnknownName):
        compare("ours", "theirs", tmp_path, (4,))


def test_the_summary_holds_ours_against_each_other_method() -> None:
    text = "name\nTest side.\nrequest.top_1  0.7000\n"
    tables = {Table(name, 4): text for name in ("ours", "kde", "paper")}
    drawn = {Table("ours", 4): kept(0.95), Table("paper", 4): kept(0.6)}
    lines = summary(tables, drawn).splitlines()
    at = lines.index("## Ours less each other method, lives drawn again for both alike")
    assert lines[at + 2] == "| | request.top_1 | step.pr_auc_at_1 | operator.ac_at_1 |"
    assert lines[at + 4].startswith("| T4: paper | 0.") and lines[at + 4].endswith(" * | - | - |")
    assert lines[at + 5] == "" and "drawn again for both" not in summary(tables)
