"""``bundle.json``, what a recording says about itself: written whole or not at all, read with a bound."""

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from teller_core.errors import FormatError, InputError

NAME = "bundle.json"
SCHEMA = 2
MOST_BYTES = 4 << 20


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write what ``folder`` holds. Raises OSError where the disk refuses; what was there stays."""
    hidden = folder / f".part-{NAME}"
    hidden.write_text(json.dumps(about, indent=1) + "\n")
    hidden.replace(folder / NAME)


def read_about(folder: Path) -> dict[str, Any]:
    """What ``folder`` says of itself. Raises InputError where it is no recording, FormatError where it is broken."""
    what, path = f"The recording {folder.name}", folder / NAME
    try:
        seen = path.stat()
        text = (
            path.read_bytes() if stat.S_ISREG(seen.st_mode) and seen.st_size <= MOST_BYTES else b""
        )  # a pipe never ends
        found: object = json.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        why = f"it is no recording: it has no {NAME}" if folder.exists() else "there is no such folder"
        raise InputError(what, why, "Name the folder that `capture` wrote") from None
    except OSError as error:
        why = f"its {NAME} cannot be read ({(error.strerror or 'no reason given').lower()})"
        raise InputError(what, why, "Ask its owner to let you") from None
    except (ValueError, RecursionError):
        why = f"its {NAME} is broken"
        raise FormatError(what, why, "Import the folder by itself: what its processes wrote is whole") from None
    if not isinstance(found, dict):
        raise FormatError(what, f"its {NAME} is none of ours", "Name the folder that `capture` wrote")
    return cast("dict[str, Any]", found)


def count_of(about: Mapping[str, Any], name: str) -> int:
    """The number ``name`` that a recording, or a part of it, says of itself; 0 where it says none."""
    value = about.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
