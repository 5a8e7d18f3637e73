"""How much memory each reader takes for a file that never ends a line or a list: ``python tests/fuzz/memory.py MEGABYTES``.

One line a format: its name and the MiB by which the peak of the process rose above what readers take for small files.
"""

import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from zstandard import ZstdCompressor

from tests.fuzz.checks import READERS, check, read_file, samples

LISTS = (b"{", b"[")
"""What begins so is taken for JSON, and gets a list that never ends. The rest gets a line."""


def peak() -> int:
    """MiB: the most that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> None:
    """Read the small files, then the large ones."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "input")
        for name in READERS:
            for sample in samples(name):
                path.write_bytes(sample)
                check(read_file(name, path))
        small = peak()
        for name in READERS:
            head = samples(name)[0]
            # other letters are as many small nodes of a Chakra trace, which take a minute
            piece = b"[" if head[:1] in LISTS or name == "chakra" else b"x"
            with path.open("wb") as file, ZstdCompressor().stream_writer(file) as packed:
                packed.write(head[: len(head) // 2])
                for _ in range(int(sys.argv[1])):
                    packed.write(piece * (1 << 20))
            read_file(name, path)
            sys.stdout.write(f"{name} {peak() - small}\n")


if __name__ == "__main__":
    main()
