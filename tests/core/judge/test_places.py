"""What a place is called, however deep it is."""

import numpy as np
import pytest

from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.judge import places
from teller_core.judge.places import PLACE_LENGTH, place_of
from tests.core.judge.service import US, Rows

DEEP = 20_000


def chain(names: list[tuple[str, Layer]]) -> Tree:
    """Each name inside the one before it."""
    rows = Rows(names=sorted({name for name, _ in names}))
    number = {name: i for i, name in enumerate(rows.names)}
    for at, (name, layer) in enumerate(names):
        rows.start.append(at * US)
        rows.dur.append((2 * len(names) - 2 * at) * US)
        rows.name.append(number[name])
        rows.lane.append(0)
        rows.layer.append(layer)
        rows.parent.append(at - 1)
        rows.stop.append(len(names))
    return rows.tree()


@pytest.mark.parametrize(
    "names",
    [
        [("part " + "abcdefghij"[i % 10] * (i % 7), Layer.OPERATOR) for i in range(DEEP)],
        [(f"{i}.py(1): run", Layer.PYTHON) for i in range(DEEP)],
    ],
    ids=["annotations", "frames"],
)
def test_naming_every_place_of_a_chain_20000_deep_looks_at_each_row_a_bounded_number_of_times(
    names: list[tuple[str, Layer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    plain = places.is_frame

    def counted(name: str, layer: int) -> bool:
        nonlocal looked
        looked += 1
        assert looked <= (PLACE_LENGTH + 3) * DEEP  # a place of its length has at most this many names
        return plain(name, layer)

    monkeypatch.setattr(places, "is_frame", counted)
    tree, passed = chain(names), dict[int, int]()
    for row in reversed(range(DEEP)):
        place_of(tree, row, 0, 7, passed)
    assert looked >= DEEP - 1


def test_a_place_is_the_chain_without_frames_and_a_long_one_keeps_its_end() -> None:
    rng = np.random.default_rng(3)
    kinds = [("f.py(1): run", Layer.PYTHON), ("aten::mm", Layer.OPERATOR), ("", Layer.OPERATOR)]
    kinds += [("nn.Module: Block", Layer.PYTHON), ("x" * 100, Layer.OPERATOR)]
    names = [kinds[i] for i in rng.choice(5, size=200, p=[0.4, 0.2, 0.2, 0.15, 0.05])]
    tree, passed = chain(names), dict[int, int]()
    for row in range(200):
        for top in (0, row // 2, row):
            shown = [name[:80] for name, _ in names[top:row] if not name.startswith("f.py")]
            whole = " > ".join(shown)
            told = whole if len(whole) <= PLACE_LENGTH else f"{7:016x} > {whole[-PLACE_LENGTH:].partition(' > ')[2]}"
            assert place_of(tree, row, top, 7, passed) == told
