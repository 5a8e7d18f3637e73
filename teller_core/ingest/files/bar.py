"""How far reading is: one count of bytes over all files of a capture, whoever reads them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from teller_core.ingest.found import Progress

Tell = Callable[[str, int, int], None]
"""Called with the name of a file, the bytes read so far of all files, and all of their bytes."""


@dataclass
class Bar:
    """Bytes read of each file. ``tell`` hears of every change, under the name of the file that changed."""

    names: Sequence[str]
    sizes: Sequence[int]
    tell: Tell | None
    done: dict[int, int] = field(default_factory=dict[int, int])

    def of(self, number: int) -> Progress:
        """Told the bytes read so far of one file."""

        def note(done: int) -> None:
            if self.tell and done > self.done.get(number, 0):
                self.done[number] = min(done, self.sizes[number])
                self.tell(self.names[number], sum(self.done.values()), sum(self.sizes))

        return note
