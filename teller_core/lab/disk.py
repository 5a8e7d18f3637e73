"""Which folders are on a real disk: forcing a file to memory costs nothing."""

from pathlib import Path

MOUNTS = Path("/proc/mounts")
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")


def in_memory(folder: Path) -> bool:
    """Whether ``folder`` is memory; False where the system does not say."""
    if not MOUNTS.exists():
        return False
    mounts = [line.split()[1:3] for line in MOUNTS.read_text().splitlines()]
    holding = [(len(point), kind) for point, kind in mounts if folder.resolve().is_relative_to(point)]
    return bool(holding) and max(holding)[1] in IN_MEMORY


def on_disk(folder: Path) -> Path:
    """A folder on a real disk, the one given where it is on one, or where there is none."""
    if not in_memory(folder):
        return folder
    others = (Path.cwd(), Path.home(), Path("/var/tmp"))
    return next((other for other in others if other.is_dir() and not in_memory(other)), folder)
