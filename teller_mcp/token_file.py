"""The token that clients over HTTP show: one line of a file that its owner alone may read, made where it is missing."""

import hmac
import os
import re
import secrets
import stat
import tempfile
from pathlib import Path

from teller_core.errors import InputError

TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{32,512}=*", re.ASCII)
"""What RFC 6750 lets a bearer token be, and too long to be guessed."""
MAX_BYTES = 1024


def read_or_make(path: Path) -> str:
    """The token in ``path``; a new one, of 256 random bits, where there is no such file yet.

    Raises InputError for a file that others may read, that is not this user's own or that holds no token.
    """
    try:
        return _read(path)
    except FileNotFoundError:
        _make(path)
    except OSError as error:
        raise _refusal(path, f"it cannot be read ({error.strerror})", "Name another one with --token-file") from None
    return _read(path)


def shown(header: bytes, token: str) -> bool:
    """Whether ``header``, the value of Authorization, shows ``token``. Takes as long for a near miss as for any other."""
    scheme, _, given = header.partition(b" ")
    return hmac.compare_digest(given.strip(b" "), token.encode("ascii")) and scheme.lower() == b"bearer"


def _read(path: Path) -> str:
    # What is at the end of a link, or waits for a writer, is no file that this made or that a person wrote for it.
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    with open(path, "rb", opener=lambda name, usual: os.open(name, usual | flags)) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise _refusal(path, "it is no regular file", "Name another one with --token-file")
        if about.st_uid != os.geteuid():
            raise _refusal(path, "it belongs to somebody else", "Name one of your own with --token-file")
        if about.st_mode & 0o077:
            raise _refusal(path, "others may read it", "Delete it and start again: a new one is made, of mode 0600")
        content = file.read(MAX_BYTES)
    token = content.decode("ascii", "replace").strip()
    if not TOKEN.fullmatch(token):
        raise _refusal(path, "it holds no token of 32 characters or more", "Delete it and start again: one is made")
    return token


def _make(path: Path) -> None:
    """Write a new token to ``path`` in one go: who starts at the same moment sees all of it or nothing."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        held, draft = tempfile.mkstemp(prefix=".token-", dir=path.parent)  # of mode 0600
    except OSError as error:
        raise _refusal(path, f"it cannot be made ({error.strerror})", "Name another one with --token-file") from None
    try:
        with os.fdopen(held, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        os.link(draft, path)
    except FileExistsError:
        pass  # somebody was faster: theirs is the token
    except OSError as error:
        raise _refusal(path, f"it cannot be made ({error.strerror})", "Name another one with --token-file") from None
    finally:
        os.unlink(draft)


def _refusal(path: Path, why: str, next_step: str) -> InputError:
    return InputError(f"The token file {path.name}", why, next_step)
