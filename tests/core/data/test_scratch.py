"""Folders for temporary files go with whoever made them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from teller_core.data.scratch import GRACE_S, scratch, sweep
from teller_core.errors import InputError

HOLD = """
import sys, time
from pathlib import Path
from teller_core.data.scratch import scratch
with scratch(Path(sys.argv[1])) as folder:
    (folder / "large").write_bytes(bytes(1000))
    print(folder.name, flush=True)
    time.sleep(600)
"""


def test_a_folder_is_its_owners_alone_and_goes_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), scratch(tmp_path) as folder:
        assert folder.parent == tmp_path and folder.name.startswith(".")
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("x")
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []


def test_a_folder_in_use_stays_and_one_of_a_killed_process_goes(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        name = other.stdout.readline().strip()
        with scratch(tmp_path) as mine:
            assert sweep(tmp_path) == 0
            assert sorted(os.listdir(tmp_path)) == sorted([name, mine.name])
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert os.listdir(tmp_path) == [name]
    with scratch(tmp_path) as mine:
        assert os.listdir(tmp_path) == [mine.name]


def test_a_folder_without_a_lock_goes_when_it_is_old_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    for name in (".teller-new", ".teller-old", "teller-mine", ".teller-link"):
        if "link" not in name:
            (tmp_path / name).mkdir()
    (tmp_path / ".teller-link").symlink_to(tmp_path / "teller-mine")
    old = time.time() - GRACE_S - 60
    os.utime(tmp_path / ".teller-old", (old, old))
    assert sweep(tmp_path) == 1
    assert sorted(os.listdir(tmp_path)) == [".teller-link", ".teller-new", "teller-mine"]


def test_where_no_folder_can_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="no folder for temporary files"), scratch(tmp_path / "file"):
        pass
