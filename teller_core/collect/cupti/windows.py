"""Windows of CUPTI's records: asked for by a file that the library in each process looks for ten times a second."""

from pathlib import Path

MOST_SECONDS = 3600
LAYOUT_FILE = ".cupti-layout"
"""Lies in the folder of a capture whose processes load the library for their GPUs."""
MOST_RECORDS = 2_000_000
"""About 150 MB a process, less where TELLER_CAPTURE_BYTES bounds it: a window has an eighth of them, and the last eight stay."""


def are_on(cap: Path) -> bool:
    """Whether processes that record into ``cap`` load the library where they use a GPU."""
    return (cap / LAYOUT_FILE).exists()


def open_window(
    cap: Path,
    seconds: float,
    most: int = MOST_RECORDS,
    *,
    steps: int | None = None,
    at: int | None = None,
    whole: bool = False,
    shared: bool = False,
) -> None:
    """Ask every process with CUDA for its records of ``seconds`` from now, ``most`` a process.

    ``steps``: end in each process after so many of its engine's, where a hook marks them. ``at``: open it then (Unix ns).
    ``whole``: one record for each replay of a CUDA graph, not one for each of its nodes; dangerous for graphs that were made
    before the window (a program on CUDA 13.0 died of it). ``shared``: go on where another client
    of CUPTI is known; it may lose its records to us. The file of a process is ``cupti-PID-N.bin``. What is asked is dropped
    by a process that first sees it when it is over.
    """
    words = [
        str(round(min(seconds, MOST_SECONDS) * 1000)),
        str(most),
        *(["whole"] if whole else []),
        *(["shared"] if shared else []),
        *([f"steps={steps}"] if steps else []),
        *([f"at={at}"] if at else []),
    ]
    hidden = cap / ".CUPTI"
    hidden.write_text(" ".join(words))
    hidden.replace(cap / "CUPTI")


def close_window(cap: Path) -> None:
    """End the window that is open. Its file is complete once its footer is there, about a tenth of a second later."""
    (cap / "CUPTI").unlink(missing_ok=True)
