"""What the machine has no more of is refused as that, and never put down to a file."""

import errno
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.long_columns import spool
from teller_core.data.means import within_means
from teller_core.errors import OutOfRoom


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "memory ran out"),
        (OSError(errno.ENOSPC, "x"), "there is no room on the disk"),
        (OSError(errno.EDQUOT, "x"), "there is no room on the disk"),
        (BlockingIOError(errno.EAGAIN, "x"), "memory or processes ran out"),
        (ImportError("libx.so: failed to map segment from shared object"), "memory ran out before all"),
        (OSError(errno.EMFILE, "x"), "no further file may be opened"),
    ],
)
def test_what_ran_out_is_told_in_one_line(error: Exception, said: str) -> None:
    with pytest.raises(OutOfRoom, match=f"^r0: {said}"), within_means("r0"):
        raise error


@pytest.mark.parametrize("error", [OSError(errno.EIO, "x"), OSError("x"), ImportError("x"), ZeroDivisionError()])
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, within_means("r0"):
        raise error
    assert raised.value is error


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_columns_that_find_no_room_on_the_disk_are_refused() -> None:
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OutOfRoom, match="a long trace: there is no room"):
        spool([np.arange(100)], full)
