"""A folder of episodes holds recordings, a plan and the truth, and gives the same episodes again, however often it was ended."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.capture import processes
from teller_core.errors import FormatError, InputError
from teller_core.lab.evaluation.episode import HEALTHY, NOT_JUDGED, TEST, TRAIN
from teller_core.lab.evaluation.method import nothing
from teller_core.lab.evaluation.rows import rows_of
from teller_core.lab.perturb.episodes import RUNS
from teller_core.lab.perturb.faults import FAULTS, NO_HEADLINE
from teller_core.lab.perturb.folder import PLAN, TRUTH, build, episodes_of, planned, truth_of
from teller_core.lab.perturb.judging import beside, lines_of_built, sides_of
from teller_core.lab.perturb.recordings import RECORDINGS, Recording, found
from tests.core.judge.captured import TRIMMED

NAME = "nodes"
GIVEN = [(Recording(NAME, TEST, "vllm_2node"), TRIMMED / "vllm_2node")]


def quiet(text: str) -> None:
    """Nobody looks."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("replayed")
    build(made, GIVEN, quiet, seed=3, wanted=16)
    return made


def test_as_many_episodes_are_made_as_were_asked_for(folder: Path) -> None:
    truth = truth_of(folder, NAME)
    assert [one["episode"] for one in truth] == list(range(16))
    assert {one["fault"] for one in truth} <= set(FAULTS)
    assert len({one["fault"] for one in truth}) >= 4
    assert lines_of_built(folder, planned(folder))[-1] == "16 episodes of 1 recordings."


def test_an_episode_is_made_again_bit_for_bit_with_its_truth(folder: Path) -> None:
    truth = truth_of(folder, NAME)
    for number, one, episode in episodes_of(folder, NAME, [2, 7]):
        assert one.labels.step.tolist() == truth[number]["step"]
        assert episode.labels.request == truth[number]["request"]
        assert set(episode.labels.request) <= {HEALTHY, NOT_JUDGED, str(truth[number]["cause"])}
        assert episode.life == NAME
        assert episode.labels.request_window.tolist() == list(range(number * RUNS, number * RUNS + len(one.runs)))


def test_who_answers_sees_neither_the_fault_nor_the_recording(folder: Path) -> None:
    ((_, _, episode),) = episodes_of(folder, NAME, [2])
    assert NAME not in (episode.seen.capture.id, episode.seen.capture.name)
    assert not episode.seen.capture.files


def test_either_trace_of_a_process_that_was_recorded_twice_is_the_rank_to_blame(folder: Path) -> None:
    late = [at for at, one in enumerate(truth_of(folder, NAME)) if one["fault"] == "late_rank"][:1]
    ((_, _, episode),) = episodes_of(folder, NAME, late)
    capture, labels = episode.seen.capture, episode.labels
    process = processes(capture.ranks)
    step, rank = next(iter(labels.ranks.items()))
    twice = np.flatnonzero(process == process[rank]).tolist()
    assert len(twice) > 1 and len(np.unique(process)) > 1
    for named, right in [
        (twice[:1], True),
        (twice[-1:], True),
        (np.flatnonzero(process != process[rank]).tolist(), False),
    ]:
        ranks: list[list[int]] = [[] for _ in labels.step]
        ranks[step] = named
        rows = rows_of([episode], [replace(nothing(capture), ranks=ranks)]).ranks
        at = sorted(labels.ranks).index(step)
        assert (rows.named[at][0] in rows.right[at]) is right


def test_what_was_ended_in_the_middle_goes_on_from_there(folder: Path, tmp_path: Path) -> None:
    whole = (folder / TRUTH / f"{NAME}.jsonl").read_text()
    build(tmp_path, GIVEN, quiet, seed=3, wanted=16)
    path = tmp_path / TRUTH / f"{NAME}.jsonl"
    begun = "".join(path.read_text().splitlines(keepends=True)[:5]) + path.read_text().splitlines()[5][:30]
    path.write_text(begun)
    assert len(truth_of(tmp_path, NAME)) == 5
    build(tmp_path, GIVEN, quiet, seed=3, wanted=16)
    assert path.read_text() == whole


def test_another_seed_is_another_folder(folder: Path) -> None:
    with pytest.raises(InputError):
        build(folder, GIVEN, quiet, seed=4, wanted=16)
    assert json.loads((folder / PLAN).read_text())["seed"] == 3


def test_an_episode_that_is_not_what_it_was_is_refused(tmp_path: Path) -> None:
    build(tmp_path, GIVEN, quiet, seed=1, wanted=1)
    path = tmp_path / TRUTH / f"{NAME}.jsonl"
    path.write_text(path.read_text().replace(truth_of(tmp_path, NAME)[0]["digest"], "0" * 16))
    with pytest.raises(FormatError):
        list(episodes_of(tmp_path, NAME, [0]))
    with pytest.raises(FormatError):
        planned(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "", 3])
def test_a_plan_whose_names_lead_elsewhere_is_damaged(folder: Path, tmp_path: Path, name: object) -> None:
    plan = json.loads((folder / PLAN).read_text())
    (tmp_path / PLAN).write_text(json.dumps({**plan, "recordings": [{**plan["recordings"][0], "name": name}]}))
    with pytest.raises(FormatError, match="damaged"):
        planned(tmp_path)


def test_recordings_stand_on_one_side_and_are_looked_for_in_folders(tmp_path: Path) -> None:
    assert len({one.name for one in RECORDINGS}) == len(RECORDINGS)
    assert {one.side for one in RECORDINGS} == {TRAIN, TEST}
    assert found([tmp_path]) == []
    (tmp_path / RECORDINGS[0].path).mkdir(parents=True)
    only = [(RECORDINGS[0], tmp_path / RECORDINGS[0].path)]
    assert found([tmp_path]) == found([tmp_path / "nowhere", tmp_path, tmp_path]) == only


def test_episodes_are_given_to_methods_by_side(folder: Path) -> None:
    sides = sides_of(folder, quiet)
    assert not sides.train
    counted = [one for one in truth_of(folder, NAME) if one["fault"] not in NO_HEADLINE]
    assert 0 < len(sides.test) == len(counted) < 16
    begins = np.concatenate([episode.seen.case.begin for episode in sides.test])
    assert len(np.unique(begins)) == len(begins)


def test_figures_stand_beside_those_of_the_lives() -> None:
    mine, theirs = "step.f1_at_43   0.9000   0.8000 to 0.9500   40\n", "step.f1_at_43   0.8000\n"
    line = next(line for line in beside(mine, theirs) if line.startswith("step.f1_at_43"))
    assert line.split() == ["step.f1_at_43", "0.9000", "0.8000"]
    assert next(line for line in beside(mine, "") if line.startswith("step.f1_at_43")).split()[-1] == "-"
