"""Tables on disk, a text file a method and tier, and the ratchet beside them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from teller_core.errors import UnknownName
from teller_core.lab.evaluation import ratchet
from teller_core.lab.evaluation.loading import sides
from teller_core.lab.evaluation.methods import METHODS, method
from teller_core.lab.evaluation.metrics import Figure
from teller_core.lab.evaluation.ratchet import Floor, Key
from teller_core.lab.evaluation.running import Progress, evaluated
from teller_core.lab.evaluation.tables import table, values

RESULTS, RATCHET = "results", "ratchet.txt"
ALL = "all"
TIERS = (0, 1, 2, 3, 4)
HELD = ("ours",)
"""Methods whose figures never fall: nobody has to keep baselines good."""


def evaluate(wanted: str, folder: Path, tiers: Sequence[int], progress: Progress) -> list[str]:
    """The tables of one method, or of ALL, written into ``folder`` beside its lives; and the ratchet raised by what is better.

    Returns their texts, behind those of a method that is held a line for each floor that was not reached. Raises TellerError.
    """
    methods = list(METHODS.values()) if wanted == ALL else [method(wanted)]
    into = folder / RESULTS
    texts: list[str] = []
    for tier in tiers:
        given = sides(folder, tier, progress)
        for one in methods:
            done = evaluated(one, given, progress)
            into.mkdir(exist_ok=True)
            text = table(done, tier)
            (into / f"{one.name}.T{tier}.txt").write_text(text, encoding="utf-8")
            texts.append(text)
            if one.name in HELD:
                texts += _held(into / RATCHET, one.name, tier, done.figures)
    return texts


def told(into: Path) -> dict[Key, float]:
    """What the tables in a folder of results say. Raises UnknownName for a table of a method that is not there."""
    found: dict[Key, float] = {}
    for path in sorted(into.glob("*.T?.txt")):
        name, _, tier = path.stem.partition(".T")
        if name not in METHODS:
            raise UnknownName(path.name, "it is of no method that is there", "Take it away")
        for figure, value in values(path.read_text(encoding="utf-8")).items():
            found[Key(name, int(tier), figure)] = value
    return found


def floors(into: Path) -> dict[Key, Floor]:
    """The ratchet of a folder of results, empty where it has none. Raises FormatError for a broken one."""
    path = into / RATCHET
    return ratchet.read(path.read_text(encoding="utf-8")) if path.exists() else {}


def _held(path: Path, name: str, tier: int, figures: Sequence[Figure]) -> list[str]:
    known = floors(path.parent)
    mine: Mapping[Key, Floor] = {key: floor for key, floor in known.items() if (key.method, key.tier) == (name, tier)}
    now = {Key(name, tier, figure.key): figure.value for figure in figures}
    path.write_text(ratchet.written(ratchet.raised(known, name, tier, figures)), encoding="utf-8")
    return [f"Below what was reached before: {line}" for line in ratchet.undone(mine, now)]
