"""Options are chosen by lives on the training side, tables can be read again, and the ratchet only rises."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.errors import FormatError, InputError, UnknownName
from teller_core.lab import disk
from teller_core.lab.evaluation import ratchet, results, running, tables
from teller_core.lab.evaluation import summary as summary_of
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.figure import Figure
from teller_core.lab.evaluation.method import Judged, Method, Options, nothing
from teller_core.lab.evaluation.ratchet import Floor, Key, raised, read, undone, written
from teller_core.lab.evaluation.results import floors, told
from teller_core.lab.evaluation.running import Sides, evaluated, left_out
from teller_core.lab.evaluation.seen import Seen
from teller_core.lab.evaluation.summary import Table, summary
from teller_core.lab.evaluation.tables import Said, left_out_lines, said, table, values
from teller_core.lab.evaluation.tuning import folds, spread, tuned
from teller_core.lab.injectors import SEVERITIES
from teller_core.lab.perturb import judging
from tests.core.lab.evaluation.made import side

RESULTS = Path(__file__).parents[3] / "lab" / "results"
seen_in_training: list[frozenset[str]] = []


def _train(episodes: Sequence[Episode], options: Options, seed: int) -> Options:
    seen_in_training.append(frozenset(each.life for each in episodes))
    return options


def _judge(options: Options, seen: Seen) -> Judged:
    """Good steps where the option says so."""
    took = seen.steps.took.astype(np.float64)
    return replace(nothing(seen.capture), step_score=took if options["good"] else -took)


STUB = Method("stub", "a method whose options matter", _train, _judge, ({"good": 0}, {"good": 1}))


def quiet(text: str) -> None:
    """Nobody looks."""


def test_the_better_options_win_and_every_try_is_logged() -> None:
    choice = tuned(STUB, side(range(4)), quiet)
    assert choice.options == {"good": 1}
    assert [line.partition(":")[0] for line in choice.log] == ["good 0", "good 1"]
    assert all(line.count(",") == 2 for line in choice.log)


def test_options_of_steps_are_not_tried_where_no_step_can_be_scored() -> None:
    tries: list[Options] = []
    blind = replace(
        STUB,
        train=lambda episodes, options, seed: tries.append(options),
        judge=lambda fitted, seen: nothing(seen.capture),
        of_steps=True,
    )
    choice = tuned(blind, side(range(4)), quiet)
    assert choice.log == ["good 0: no step can be scored, nothing to choose"] and tries == [{"good": 0}] * 3
    assert len(tuned(replace(blind, of_steps=False), side(range(4)), quiet).log) == 2


def test_no_life_is_on_both_sides_of_a_fold() -> None:
    lives = ["b", "a", "c", "a", "b", "d"]
    parts = folds(lives)
    assert sorted(life for part in parts for life in part) == ["a", "b", "c", "d"] and len(parts) == 3
    seen_in_training.clear()
    tuned(STUB, side(range(4)), quiet)
    everything = {f"life-{at}" for at in range(4)}
    assert all(mine < everything for mine in seen_in_training) and folds(["a", "a"]) == []


def test_options_are_chosen_on_all_lives_where_there_are_too_many_episodes() -> None:
    episodes = side(range(5))
    some = spread(episodes, 7)
    assert len(some) == 7 and {each.life for each in some} == {each.life for each in episodes}
    assert spread(episodes, 100) == episodes


def test_a_life_on_both_sides_is_refused() -> None:
    with pytest.raises(InputError, match="1 stand on both sides"):
        evaluated(STUB, Sides(side([0, 1]), side([1, 2])), quiet)
    with pytest.raises(InputError, match="a side has none"):
        evaluated(STUB, Sides([], side([1])), quiet)
    first = replace(STUB, grid=STUB.grid[:1], learns=False)  # who learns nothing needs no training side
    assert evaluated(first, Sides([], side([1])), quiet).rows.lives == 1


def test_a_table_says_all_and_is_read_again_to_the_last_digit() -> None:
    test = side(range(4, 11))
    done = evaluated(STUB, Sides(side(range(4)), test, all_faulty=test, healthy=test, whole=test), quiet)
    text = table(done, 3)
    assert text.startswith("stub at T3: a method whose options matter\nTest side: 7 lives, 21 episodes, ")
    assert text.endswith("\n") and not any(line != line.rstrip() for line in text.splitlines())
    again = values(text)
    told_figures = {figure.key: figure.value for figure in done.figures if not np.isnan(figure.value)}
    assert again == pytest.approx(told_figures, abs=1e-4) and "step.f1_at_43" in again
    for key in ("all_faulty.called_normal", "healthy_alone.alarms_an_hour", "request_whole_life.top_1"):
        assert key in again
    assert "good 1: " in text and "(no fault)" in text and "host.io_stall" in text


def test_every_figure_that_the_summary_or_a_headline_asks_for_is_one() -> None:
    test = side(range(4, 11))
    done = evaluated(STUB, Sides(side(range(4)), test, all_faulty=test, healthy=test, whole=test), quiet)
    found = {figure.key for figure in done.figures}
    assert [*tables.HEADLINES] == [*summary_of.HEADLINES]
    goals = {*summary_of.GOALS, *summary_of.GOALS_OF_FUSED}
    wanted = {*summary_of.HEADLINES, *goals, *tables.HEADLINES, *judging.BESIDE}
    wanted |= {key for columns in summary_of.SECTIONS.values() for key in columns}
    by_severity = {key for key in wanted if "severity_" in key}
    assert wanted - by_severity <= found
    told = {key.partition("severity_")[2].partition(".")[0] for key in by_severity}
    assert told == {*SEVERITIES}
    assert {key.replace("_slight", "_strong") for key in by_severity if "_slight" in key} <= found
    elsewhere = {"operator_severity", "rank_severity", "unseen"}  # nothing here is known of these
    assert {tables._prefix(key) for key in found} == {*tables.TITLES} - elsewhere


def test_a_figure_of_thousands_stands_apart_from_its_interval() -> None:
    done = evaluated(STUB, Sides(side(range(4)), side([4])), quiet)
    many = Figure("healthy_alone.alarms_an_hour", 3468.2255, 2717.7129, 13913.0152, 3, -1)
    text = table(done._replace(figures=[many]), 3)
    assert said(text) == {many.key: Said(3468.2255, 2717.7129, 13913.0152)}


def test_what_was_never_trained_on_is_judged_apart() -> None:
    episodes = [replace(each, about={"side": "train" if each.life < "life-4" else "test"}) for each in side(range(8))]
    found = left_out(STUB, episodes, lambda each: each.labels.cause, quiet)
    assert [one.value for one in found] == ["host.cpu_starvation", "host.gc_pause", "host.io_stall"]
    assert all(one.episodes == 4 for one in found)
    assert len(left_out_lines({"stub": found}, "cause", 3)) == 5


def test_no_more_is_trained_on_than_is_allowed_where_something_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[int] = []
    counting = replace(STUB, train=lambda episodes, options, seed: trained.append(len(episodes)) or options)
    episodes = [replace(each, about={"side": "train" if each.life < "life-4" else "test"}) for each in side(range(8))]
    monkeypatch.setattr(running, "MOST_LEFT", 5)
    left_out(counting, episodes, lambda each: each.labels.cause, quiet)
    assert trained == [5, 5, 5]


def test_the_summary_says_what_is_to_reach_and_who_comes_near() -> None:
    def text(top: float, f1: float) -> str:
        interval = f"{top - 0.1:.4f} to {top + 0.1:.4f}"
        return f"name\nTest side.\nrequest.top_1  {top:.4f}  {interval}  40\nstep_felt.f1_at_43  {f1:.4f}\n"

    given = {"ours": (0.8, 0.9), "rules": (0.99, 0.99), "zscore": (0.3, 0.95), "kde": (0.4, 0.2), "paper": (0.5, 0.1)}
    lines = summary({Table(name, 4): text(*values) for name, values in given.items()}).splitlines()
    assert "## What ours is to reach, at T4" in lines
    goals = [line for line in lines if line.startswith(("| cause of", "| steps of d' 3 and more: F1", "| rank"))]
    assert goals == [
        "| cause of a struck request, top-1 | 0.75 | 0.800 (0.700 to 0.900) | reached | 0.500 (0.400 to 0.600) | kde 0.400 |",
        "| steps of d' 3 and more: F1 at 43 % | 0.93 | 0.900 | missed | 0.100 | zscore 0.950 |",
        "| rank, AC@1 | 0.95 | - | not said | - | - |",
    ]
    assert "- T4. Ours is ahead in 2 of 2." in lines


def test_the_summary_says_what_ours_with_the_model_is_to_reach_less_of_an_error_being_better() -> None:
    def text(error: float) -> str:
        return f"name\nTest side.\ncertainty.step_ece  {error:.4f}\n"

    for error, verdict in ((0.02, "reached"), (0.04, "missed")):
        given = {Table("fused", 4): text(error), Table("model", 4): text(0.01), Table("kde", 4): text(0.05)}
        lines = summary(given).splitlines()
        assert "## What fused is to reach, at T4" in lines
        row = f"| calibration error of all steps, at most | 0.03 | {error:.3f} | {verdict} | - | kde 0.050 |"
        assert row in lines  # and not the model alone, which is ours, too


def test_kept_tables_of_the_model_are_read_whether_or_not_weights_ship(tmp_path: Path) -> None:
    (tmp_path / "fused.T4.txt").write_text("name\nTest side.\nrequest.top_1  0.7000\n")
    assert told(tmp_path) == {Key("fused", 4, "request.top_1"): 0.7}


def test_the_summary_says_in_which_figures_the_papers_method_is_as_good_or_better() -> None:
    ours = "a\nTest side.\nrequest.top_1  0.5000\nrequest.top_3  0.9000\ncertainty.ece  0.3000\nrequest.could_not_tell  0.2000\n"
    paper = "b\nTest side.\nrequest.top_1  0.5000\nrequest.top_3  0.8000\ncertainty.ece  0.1000\nrank.ac_at_1  0.4000\n"
    lines = summary({Table("ours", 3): ours, Table("paper", 3): paper, Table("ours", 4): ours}).splitlines()
    assert [line for line in lines if "ahead" in line] == [
        "- T3. Ours is ahead in 1 of 3, not in request.top_1 (0.500, theirs 0.500), certainty.ece (0.300, theirs 0.100)."
    ]


def test_floors_rise_and_never_fall() -> None:
    def figure(key: str, value: float, better: int) -> Figure:
        return Figure(key, value, value, value, 40, better)

    known = raised(
        {}, "ours", 4, [figure("request.top_1", 0.7, 1), figure("certainty.ece", 0.2, -1), figure("x.y", 1, 0)]
    )
    assert known == {
        Key("ours", 4, "request.top_1"): Floor(0.7, 1),
        Key("ours", 4, "certainty.ece"): Floor(0.2, -1),
    }
    worse = [figure("request.top_1", 0.6, 1), figure("certainty.ece", 0.3, -1)]
    assert raised(known, "ours", 4, worse) == known
    better = raised(known, "ours", 4, [figure("request.top_1", 0.8, 1), figure("certainty.ece", 0.1, -1)])
    assert [floor.value for floor in better.values()] == [0.8, 0.1]
    assert read(written(better)) == better


def test_a_floor_that_is_not_reached_or_not_said_any_more_is_told() -> None:
    known = {Key("ours", 4, "a.b"): Floor(0.7, 1), Key("ours", 4, "c.d"): Floor(2.0, -1)}
    assert undone(known, {Key("ours", 4, "a.b"): 0.70004, Key("ours", 4, "c.d"): 1.0}) == []
    assert undone(known, {Key("ours", 4, "a.b"): 0.69}) == [
        "ours T4 a.b: it was 0.7000 and is 0.6900",
        "ours T4 c.d: it was 2.0000 and is not said any more",
    ]


@pytest.mark.parametrize(
    "line", ["ours T4 a.b", "ours 4 a.b 0.1 least", "ours T4 a.b much least", "ours T4 a.b 0.1 more"]
)
def test_a_broken_ratchet_is_refused(line: str) -> None:
    with pytest.raises(FormatError, match="a line of it is no floor"):
        ratchet.read(line)


def test_the_tables_that_are_kept_reach_every_floor() -> None:
    if not RESULTS.exists():
        pytest.skip("no results are kept yet")
    assert undone(floors(RESULTS), told(RESULTS)) == []


def judged_in(folder: Path, monkeypatch: pytest.MonkeyPatch, tier: int) -> list[str]:
    ours = replace(STUB, name="ours")
    monkeypatch.setattr(results, "method", lambda name: ours)
    monkeypatch.setattr(results, "opened", lambda *given, **more: nullcontext())
    monkeypatch.setattr(results, "sides", lambda *given: Sides(side(range(4)), side(range(4, 8))))
    return results.evaluate("ours", folder, (tier,), quiet)


def test_ended_at_any_moment_tables_and_floors_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged_in(tmp_path, monkeypatch, 4)
    before = {path.name: path.read_text() for path in (tmp_path / "results").iterdir()}
    assert {*before} == {"ours.T4.txt", "ours.T4.drawn.txt", "ratchet.txt", "summary.md"}

    def killed(number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        judged_in(tmp_path, monkeypatch, 4)
    assert {path.name: path.read_text() for path in (tmp_path / "results").iterdir()} == before


def test_two_that_judge_at_once_lose_no_floor_of_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged_in(tmp_path, monkeypatch, 4)
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    with disk.alone(tmp_path / "results"), pytest.raises(InputError, match="somebody else is writing"):
        judged_in(tmp_path, monkeypatch, 3)
    judged_in(tmp_path, monkeypatch, 3)
    assert {key.tier for key in floors(tmp_path / "results")} == {3, 4}


@pytest.mark.parametrize("name", ["ours.Tz.txt", "ours.T9.txt", "yours.T4.txt"])
def test_a_table_of_no_method_or_tier_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(UnknownName, match="no method and tier"):
        told(tmp_path)


def test_a_table_or_floors_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ours.T4.txt").write_bytes(b"\xff\xfe")
    (tmp_path / "ratchet.txt").write_bytes(b"\xff\xfe")
    for read_all in (told, floors):
        with pytest.raises(FormatError, match="it cannot be read"):
            read_all(tmp_path)
