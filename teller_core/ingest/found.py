"""What a reader is told about a file, and what it hands back."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from teller_core.data.records import Process, Records
from teller_core.data.trace import Trace
from teller_core.ingest.nvtx_pieces import Piece

Progress = Callable[[int], None]
"""Called now and then with the bytes of the file read so far."""


class Place(NamedTuple):
    """Where a file stands in its capture, and what reading it may need to know."""

    host: str = ""
    bundle: bool = False
    """``host`` is told by the folder, for all files alike: what a file itself says of it gives way."""
    file: int = 0
    """Position in ``Recording.files``."""
    near: int = 0
    """Unix ns in the year, give or take half, of stamps that name none."""
    keep_prompts: bool = False
    salt: bytes = b""
    """Makes the hash that stands for a prompt useless outside this capture."""
    written: int = 0
    """Unix ns of the file's date, 0 where nobody knows it: when a page without times of its own was fetched."""


@dataclass
class Found(Records):
    """What one file held. Readers fill it; positions of lines count from 0 within the file."""

    clock: str = "unix"
    events: int = 0
    kept: int = 0
    other: Counter[str] = field(default_factory=Counter[str])
    problems: Counter[str] = field(default_factory=Counter[str])
    traces: list[Trace] = field(default_factory=list[Trace])
    """One for each process that the file recorded."""
    processes: list[Process] = field(default_factory=list[Process])
    """Processes whose role or rank the file tells."""
    piece: Piece | None = None
    """Sides of ranges whose other sides lie in other files of the same process."""


Read = Callable[[Path, Place, Progress | None], Found]
"""Reads a file. Errors: TellerError for a file that is not what it seemed, or cut short."""

Sniff = Callable[[bytes], bool]
"""Whether the first expanded bytes of a file are of the format."""
