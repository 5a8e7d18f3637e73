"""Tables on disk, a text file a method and tier, what they say together, and the ratchet beside them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeVar

from teller_core.data.whole import keep_text, made_folder
from teller_core.errors import FormatError, InputError, UnknownName
from teller_core.ingest.files.room import cores
from teller_core.lab.disk import alone
from teller_core.lab.evaluation import paired, ratchet
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.figure import Figure
from teller_core.lab.evaluation.learners import load
from teller_core.lab.evaluation.loading import of_test, opened, sides
from teller_core.lab.evaluation.method import Method
from teller_core.lab.evaluation.methods import BY_NAME, METHODS, MODELS, method
from teller_core.lab.evaluation.paired import Kept
from teller_core.lab.evaluation.ratchet import Floor, Key
from teller_core.lab.evaluation.running import LeftOut, Progress, Sides, evaluated, left_out
from teller_core.lab.evaluation.summary import Table, summary
from teller_core.lab.evaluation.tables import left_out_lines, table, values
from teller_core.lab.side_by_side import side_by_side

RESULTS, RATCHET, SUMMARY = "results", "ratchet.txt", "summary.md"
DRAWN = ".drawn.txt"
"""How names of files end that hold what draws of lives came to."""
ALL = "all"
TIERS = (0, 1, 2, 3, 4)
HELD = ("ours",)
"""Methods whose figures never fall: nobody has to keep baselines good."""
LEFT_OUT: Mapping[str, Callable[[Episode], str]] = {
    "fault": lambda episode: episode.labels.fault,
    "engine": lambda episode: episode.about["engine"],
    "model": lambda episode: episode.about["model"],
    "load": lambda episode: episode.about["load"],
}
"""What may be kept from training, to be judged on."""
LATE = ("teller_core.context.tpe.reference", "teller_core.judge.replay.steps")
"""What diagnoses and the paper's method load when it is first asked for: forks of this process find it loaded."""
Found = TypeVar("Found")


class Done(NamedTuple):
    """What one method came to at one tier: the text of its table, its figures, and as text what draws of lives came to."""

    name: str
    text: str
    figures: Sequence[Figure]
    drawn: str


def evaluate(wanted: str, folder: Path, tiers: Sequence[int], progress: Progress) -> list[str]:
    """The tables of one method, or of ALL, written into ``folder`` beside its lives, and what draws of lives came to beside each;
    the ratchet raised by what is better; and SUMMARY of all tables that are there.

    Returns their texts, behind those of a method that is held a line for each floor that was not reached. Raises TellerError.
    """
    methods, into = _methods(wanted), folder / RESULTS
    texts: list[str] = []
    with opened(folder, progress, cores(), wanted=None if any(one.learns for one in methods) else of_test) as lives:
        made_folder(into)  # it takes long to come to where it would be missed
        for tier in tiers:
            given = sides(lives, tier, progress, cores())

            def done(one: Method, at_once: int, tier: int = tier, given: Sides = given) -> Done:
                found = evaluated(one, given, progress, at_once)
                return Done(one.name, table(found, tier), found.figures, paired.written(found.figures, found.rows))

            for one in _each(methods, done):
                keep_text(into / f"{one.name}.T{tier}.txt", one.text)
                keep_text(into / f"{one.name}.T{tier}{DRAWN}", one.drawn)
                texts.append(one.text)
                if one.name in HELD:
                    texts += _held(into / RATCHET, one.name, tier, one.figures)
    keep_text(into / SUMMARY, summary(_tables(into), _drawn(into)))
    return texts


def compare(wanted: str, other: str, folder: Path, tiers: Sequence[int]) -> list[str]:
    """How far one method, or each of ALL, is from the ``other`` at each of ``tiers``, by what is kept of both in ``folder``:
    nothing is judged. Raises UnknownName for a method that is not there, InputError where nothing is kept.
    """
    names = [*BY_NAME] if wanted == ALL else [method(wanted).name]
    kept, theirs = _drawn(folder / RESULTS), method(other).name
    texts: list[str] = []
    for tier in tiers:
        pairs = [(kept.get(Table(name, tier)), kept.get(Table(theirs, tier)), name) for name in names if name != theirs]
        for mine, beside, name in pairs:
            if mine is not None and beside is not None:
                texts.append("\n".join(paired.lines_of(name, theirs, tier, paired.differences(mine, beside))))
    if not texts:
        raise InputError(
            f"--versus {other}",
            "what draws of lives came to is not kept of both",
            f"Judge both: teller lab eval {other}",
        )
    return texts


def evaluate_left_out(wanted: str, folder: Path, tiers: Sequence[int], what: str, progress: Progress) -> list[str]:
    """What one method, or each of ALL, comes to on every ``what`` (of LEFT_OUT) that it was never trained on: a table a tier,
    written into ``folder`` beside its lives. Raises TellerError.
    """
    if wanted in MODELS:
        raise InputError(
            "--leave-out", "the model that ships has learned from all of the training side", "Name another method"
        )
    methods, into = _methods(wanted), folder / RESULTS
    texts: list[str] = []
    with opened(folder, progress, cores()) as lives:
        made_folder(into)
        for tier in tiers:
            given = sides(lives, tier, progress, cores())
            episodes = [*given.train, *given.test]

            def done(one: Method, at_once: int, episodes: Sequence[Episode] = episodes) -> Sequence[LeftOut]:
                return left_out(one, episodes, LEFT_OUT[what], progress, at_once)

            found = dict(zip([one.name for one in methods], _each(methods, done), strict=True))
            texts.append("\n".join(left_out_lines(found, what, tier)) + "\n")
            keep_text(into / f"{wanted}.T{tier}.without-{what}.txt", texts[-1])
    return texts


def _methods(wanted: str) -> list[Method]:
    load()
    for name in LATE:
        import_module(name)
    return list(METHODS.values()) if wanted == ALL else [method(wanted)]


def _each(methods: Sequence[Method], done: Callable[[Method, int], Found]) -> list[Found]:
    """What is ``done`` with each method: several beside one another, or one that may itself do so much at once. Ours, which take
    longest and as long as one another, are the last to begin.
    """
    if len(methods) == 1:
        return [done(methods[0], cores())]
    return side_by_side([partial(done, one, 1) for one in methods[::-1]], cores())[::-1]


def _tables(into: Path) -> dict[Table, str]:
    """The tables in a folder of results. Raises UnknownName for one of a method or a tier that is not there, FormatError for
    one that cannot be read.
    """
    found: dict[Table, str] = {}
    for path in sorted(into.glob("*.T?.txt")):
        name, _, tier = path.stem.partition(".T")
        if name not in BY_NAME or tier not in map(str, TIERS):
            raise UnknownName(path.name, "it is of no method and tier that is there", "Take it away")
        found[Table(name, int(tier))] = _text(path)
    order = list(BY_NAME)
    return dict(sorted(found.items(), key=lambda item: (order.index(item[0].method), item[0].tier)))


def _drawn(into: Path) -> dict[Table, Kept]:
    """What is kept of draws of lives in a folder of results. Raises FormatError for what cannot be read."""
    found: dict[Table, Kept] = {}
    for path in sorted(into.glob(f"*.T?{DRAWN}")):
        name, _, tier = path.name.removesuffix(DRAWN).partition(".T")
        if name in BY_NAME and tier in map(str, TIERS):
            found[Table(name, int(tier))] = paired.read(_text(path), path.name)
    return found


def told(into: Path) -> dict[Key, float]:
    """What the tables in a folder of results say. Raises UnknownName for a table of a method that is not there."""
    return {
        Key(table.method, table.tier, figure): value
        for table, text in _tables(into).items()
        for figure, value in values(text).items()
    }


def floors(into: Path) -> dict[Key, Floor]:
    """The ratchet of a folder of results, empty where it has none. Raises FormatError for a broken one."""
    path = into / RATCHET
    return ratchet.read(_text(path)) if path.exists() else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise FormatError(path.name, "it cannot be read", "Take it from the repository again, or judge anew") from error


def _held(path: Path, name: str, tier: int, figures: Sequence[Figure]) -> list[str]:
    with alone(path.parent):  # another one may judge at another tier
        known = floors(path.parent)
        keep_text(path, ratchet.written(ratchet.raised(known, name, tier, figures)))
    mine: Mapping[Key, Floor] = {key: floor for key, floor in known.items() if (key.method, key.tier) == (name, tier)}
    now = {Key(name, tier, figure.key): figure.value for figure in figures}
    return [f"Below what was reached before: {line}" for line in ratchet.undone(mine, now)]
