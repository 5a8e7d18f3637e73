"""Words that give away what was done are found wherever they stand."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from teller_core.lab.giveaways import give_away, in_processes, in_recording


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "cap").mkdir()
    (tmp_path / "server.log").write_text("INFO all is well\n")
    return tmp_path


def test_a_recording_without_such_words_has_none(bundle: Path) -> None:
    assert in_recording(bundle) == []


@pytest.mark.parametrize("word", ["gc_pause", "teller_lab_points", "TELLER_LAB_FOLDER", "sitecustomize"])
def test_a_word_is_found_in_text_in_packed_text_and_in_a_files_name(bundle: Path, word: str) -> None:
    assert word in give_away()
    (bundle / "server.log").write_text(f"INFO {word}\n")
    (bundle / "cap" / "torch.json.gz").write_bytes(gzip.compress(word.encode()))
    (bundle / "cap" / f"{word}.txt").touch()
    assert in_recording(bundle) == [f"cap/{word}.txt: {word}", f"cap/torch.json.gz: {word}", f"server.log: {word}"]


def test_a_word_is_found_in_a_command_line() -> None:
    program = [sys.executable, "-c", "print(flush=True); input()", "slow_tokenizer"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert (
            process.stdout is not None and process.stdout.readline()
        )  # a program that only begins has no command line yet
        assert in_processes(process.pid) == [f"{process.pid}: slow_tokenizer"]
        process.communicate(b"\n")
