"""Sheets of replayed recordings: of those to learn from alone, with what is true of each step and request."""

from pathlib import Path

import numpy as np
import pytest

from teller_core.data.sheets import Kind
from teller_core.data.sheets_file import HEALTHY, NOT_JUDGED, read_taught
from teller_core.errors import InputError
from teller_core.lab.evaluation.episode import TEST, TRAIN
from teller_core.lab.perturb.faults import FAULTS, NO_HEADLINE
from teller_core.lab.perturb.folder import build, truth_of
from teller_core.lab.perturb.recordings import Recording
from teller_core.lab.perturb.teaching import write_replayed
from tests.core.judge.captured import TRIMMED


def quiet(text: str) -> None:
    """Nobody looks."""


def replayed(folder: Path, **sides: str) -> Path:
    recordings = [(Recording(name, side, "vllm_2node"), TRIMMED / "vllm_2node") for name, side in sides.items()]
    build(folder, recordings, quiet, seed=3, wanted=16 * len(sides))
    return folder


def test_each_sheet_of_a_recording_to_learn_from_has_the_truth_of_its_episode(tmp_path: Path) -> None:
    folder = replayed(tmp_path / "replayed", one=TRAIN, other=TEST)
    (path,) = write_replayed(folder, tmp_path / "sheets", quiet)
    taught, truth = read_taught(path), truth_of(folder, "one")
    assert path.stem == taught.life == "one" and taught.about["side"] == TRAIN
    assert set(taught.fault) <= set(FAULTS) - set(NO_HEADLINE)
    for at in range(len(taught.sheets)):
        said = truth[taught.block[at]]
        position = int(taught.sheets.position[at])
        assert taught.fault[at] == said["fault"]
        if taught.sheets.kind[at] == Kind.REQUEST:
            assert taught.cause[at] == said["request"][position] != NOT_JUDGED
        else:
            assert taught.abnormal[at] == said["step"][position]
            assert (taught.cause[at] == HEALTHY) == (taught.abnormal[at] == 0)
    assert taught.abnormal.any() and np.any(taught.strike == 0) and np.any(taught.strike == -1)


def test_what_is_there_stays(tmp_path: Path) -> None:
    folder = replayed(tmp_path / "replayed", one=TRAIN)
    (path,) = write_replayed(folder, tmp_path / "sheets", quiet)
    written = path.stat().st_mtime_ns
    assert write_replayed(folder, tmp_path / "sheets", quiet) == [path]
    assert path.stat().st_mtime_ns == written


def test_a_folder_without_a_recording_to_learn_from_is_refused(tmp_path: Path) -> None:
    folder = replayed(tmp_path / "replayed", other=TEST)
    with pytest.raises(InputError, match="no recording of the training side"):
        write_replayed(folder, tmp_path / "sheets", quiet)
