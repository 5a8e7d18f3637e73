"""What is said where the machine has no more to give: memory, room on a disk, files, processes."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from teller_core.errors import OutOfRoom

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
MEMORY = frozenset({errno.ENOMEM, errno.EAGAIN})
"""The second: no further process may be started."""
FILES = frozenset({errno.EMFILE, errno.ENFILE})
FEWER = "Import fewer files at once, or one by one with --jobs 1"
SPACE = "Free some space; the environment's TMPDIR and --db say where TELLER writes"


@contextmanager
def within_means(what: str) -> Generator[None]:
    """Whatever in the block fails because the machine ran out of something is an OutOfRoom about ``what``."""
    try:
        yield
    except MemoryError:
        raise OutOfRoom(what, "memory ran out", FEWER) from None
    except ImportError as error:
        if "failed to map segment" not in str(error):
            raise
        raise OutOfRoom(
            what, "memory ran out before all of the program was loaded", "Allow it more (ulimit -v)"
        ) from None
    except OSError as error:
        if (refusal := short_of(what, error)) is None:
            raise
        raise refusal from None


def short_of(what: str, error: OSError) -> OutOfRoom | None:
    """What to say about ``error`` where the machine ran out of something; None where it is another error."""
    code = error.errno or 0
    if code in FULL:
        return OutOfRoom(what, f"there is no room on the disk ({os.strerror(code)})", SPACE)
    if code in MEMORY:
        return OutOfRoom(what, f"memory or processes ran out ({os.strerror(code)})", FEWER)
    if code in FILES:
        return OutOfRoom(what, f"no further file may be opened ({os.strerror(code)})", "Raise the limit (ulimit -n)")
    return None
