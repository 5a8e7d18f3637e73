"""The steps of one engine in its own order, grown source by source."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Int64
from teller_core.rebuild.engines import COLUMNS, TIME, Place
from teller_core.rebuild.match import Matched


@dataclass(slots=True)
class Slot:
    """One step: which records are about it. Positions in the Recording, -1 for none."""

    life: int
    decision: int = -1
    iteration: int = -1
    outcome: int = -1
    executions: dict[Place, int] = field(default_factory=dict[Place, int])
    names: dict[int, int] = field(default_factory=dict[int, int])
    """By tree: the position in its Annotated."""


@dataclass
class Line:
    """Slots in order, and what is known of each: int64 (n, COLUMNS)."""

    life: int
    slots: list[Slot] = field(default_factory=list[Slot])
    known: Int64 = field(default_factory=lambda: np.empty((0, COLUMNS), dtype=np.int64))

    def add(self, items: Int64, matched: Matched, new: "npt.NDArray[np.bool_] | bool" = True) -> list[tuple[Slot, int]]:
        """Join ``items`` to the slots they matched, and make slots of the rest where ``new``.

        Returns the slot of each item that has one. A new slot stands behind that of the item before it.
        """
        to = matched.to
        met = to >= 0
        here = self.known[to[met]]
        self.known[to[met]] = np.where(here < 0, items[met], here)
        self.known[to[met], TIME] = here[:, TIME]
        places = zip(np.flatnonzero(met).tolist(), to[met].tolist(), strict=True)
        pairs: list[tuple[Slot, int]] = [(self.slots[at], k) for k, at in places]
        added = np.flatnonzero(~met & new)
        if len(added):
            pairs += self._insert(items, to, added)
        return pairs

    def _insert(self, items: Int64, to: Int64, added: "npt.NDArray[np.intp]") -> list[tuple[Slot, int]]:
        fresh = [Slot(self.life) for _ in range(len(added))]
        after = np.maximum.accumulate(to)[added] if len(to) else to
        if not self.slots:
            self.slots, self.known = fresh, items[added]
            return list(zip(fresh, added.tolist(), strict=True))
        order = np.argsort(np.concatenate([np.arange(len(self.slots)), after + 0.5]), kind="stable").tolist()
        both = self.slots + fresh
        self.slots = [both[i] for i in order]
        self.known = np.concatenate([self.known, items[added]])[order]
        return list(zip(fresh, added.tolist(), strict=True))
