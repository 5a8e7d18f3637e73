"""Lives of servers in few bytes: of each one compressed store with a capture for every tier, and the truth beside it.

Of a life its windows are kept: what lies between them belongs to no episode. ``lives/NAME.xz`` is a store of the usual schema,
column by column, so that its migrations keep old lives readable; ``truth/NAME.json`` is what nobody who answers may see. A life
is there when its store is.
"""

import json
import lzma
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from teller_core.data.assessment import Assessment, Baselines, Candidates, RequestExpectations, StepExpectations
from teller_core.data.capture import Capture
from teller_core.data.scratch import scratch
from teller_core.data.whole import made_folder, whole
from teller_core.errors import FormatError, LimitError, TellerError
from teller_core.lab.benchmark.chosen import everything
from teller_core.lab.benchmark.clean import cleaned, told_by
from teller_core.lab.benchmark.columnar import columns_of, restore
from teller_core.lab.benchmark.cut import cut
from teller_core.lab.benchmark.lives import SIDES, called
from teller_core.lab.benchmark.tiers import TIERS, at_tier
from teller_core.lab.blocks import BROKEN, BlockTruth, block_of
from teller_core.lab.giveaways import give_away
from teller_core.pipeline import STAGES
from teller_core.store.chunks import LOOSE
from teller_core.store.store import Store
from teller_core.tell.progress import nobody
from teller_core.tell.summary import capture_report

LIVES, TRUTH = "lives", "truth"
MOST_BYTES = 4_500_000
"""Of one packed life. Measured, with twelve strikes: 0.5 MB of transformers, 0.9 MB of vLLM, 3 to 4.3 MB of vLLM on two ranks."""
MOST_UNPACKED = 1 << 27
"""Bytes. A life of two ranks near MOST_BYTES takes 85 million; of what says nothing, so few bytes hold tens of gigabytes."""
MOST_MEMORY = 1 << 27
"""Bytes that unpacking may ask for. The preset that packs them asks for 65 MiB; a header may ask for four gigabytes."""
FORMAT = 1
CALLERS = 1
"""The lowest tier whose requests have the names that their callers gave them."""
CALLED = "life"
"""Every capture of a life: its own name stands outside."""
NO_TIME = "2000-01-01T00:00:00+00:00"
"""When a life was packed would tell which one it is, and make other bytes of the same recording."""


@dataclass(frozen=True)
class Packed:
    """A life that is packed in ``path``. ``about``: what was asked for, and its side; ``blocks``: what really happened."""

    name: str
    path: Path
    about: Mapping[str, Any]
    blocks: Sequence[BlockTruth]


def pack(bundle: Path, blocks: Sequence[BlockTruth], about: Mapping[str, Any], into: Path, name: str) -> int:
    """Keep the recording ``bundle`` as the life ``name`` in ``into``, whole or not at all. Returns the bytes of its store.

    Raises TellerError where it cannot be read, where a text in it tells too much, or where it is too large.
    """
    for folder in (into / LIVES, into / TRUTH):
        made_folder(folder)
    intervals = [one.interval for one in everything(blocks, profiled=True)]
    with scratch() as folder:
        store = folder / "store"
        for tier in TIERS:
            at_tier(bundle, tier, folder / f"T{tier}")
            capture = _imported(folder / f"T{tier}", tier)
            _keep(replace(cut(capture, intervals), id=capture.id), store)
            shutil.rmtree(folder / f"T{tier}")
        columns = columns_of(store)
    if len(columns) > MOST_UNPACKED:
        raise TellerError(f"The life {name}", f"it takes {len(columns):,} bytes unpacked", "Ask for fewer blocks")
    packed = lzma.compress(columns, preset=9)
    if len(packed) > MOST_BYTES:
        raise TellerError(f"The life {name}", f"it takes {len(packed):,} bytes packed", "Ask for fewer blocks")
    truth = {"format": FORMAT, "about": dict(about), "blocks": [asdict(block) for block in blocks]}
    with whole(into / TRUTH / f"{name}.json") as file:
        file.write(json.dumps(truth, separators=(",", ":")).encode() + b"\n")
    with whole(into / LIVES / f"{name}.xz") as file:
        file.write(packed)
    return len(packed)


def lives(folder: Path) -> list[Packed]:
    """The lives that are packed in ``folder``, by name. Raises FormatError for a truth that cannot be read."""
    return [read_truth(folder, path.stem) for path in sorted((folder / LIVES).glob("*.xz"))]


def read_truth(folder: Path, name: str) -> Packed:
    """The life called ``name`` in ``folder``. Raises FormatError where its truth is not there, or of another format."""
    file = folder / TRUTH / f"{name}.json"
    try:
        truth = json.loads(file.read_text())
        if truth["format"] != FORMAT:
            raise FormatError(file.name, "it is of another format than this program's", "Build the life again")
        about = truth["about"]
        if about["side"] not in SIDES:
            raise ValueError("no side")
        if "wanted" in about and called(about) != name:
            raise FormatError(file.name, "it is the truth of another life", "Take both from the repository again")
        return Packed(name, folder / LIVES / f"{name}.xz", about, [block_of(one) for one in truth["blocks"]])
    except BROKEN as error:
        raise FormatError(file.name, "it is not there, or damaged", "Build the life again") from error


def packed_bytes(folder: Path) -> int:
    """Of all that is packed in ``folder``, the truth included."""
    return sum(path.stat().st_size for part in (LIVES, TRUTH) for path in (folder / part).glob("[!.]*"))


def capture_of(life: Packed, tier: int) -> Capture:
    """All of ``life`` as it was recorded at ``tier`` (0 to 4), with its trees. Nothing in it tells the name of the life."""
    (found,) = captures_of(life, (tier,))
    return found


def captures_of(life: Packed, tiers: Sequence[int]) -> Iterator[Capture]:
    """:func:`capture_of` at one of ``tiers`` after the other, unpacked once."""
    with scratch() as folder:
        unpack(life, folder / "store")
        for tier in tiers:
            yield unpacked(folder / "store", tier)


def unpacked(path: Path, tier: int) -> Capture:
    """:func:`capture_of` the life that :func:`unpack` wrote to ``path``."""
    with Store.open(path) as store:
        return with_trees(store, store.resolve(str(tier)))


def with_trees(store: Store, identity: str) -> Capture:
    """The capture ``identity`` of ``store``, with its trees."""
    capture = store.capture(identity)
    trees = {position: store.tree_rows(identity, position) for position in store.traced(identity)}
    return replace(capture, ranks=[replace(rank, tree=trees.get(at)) for at, rank in enumerate(capture.ranks)])


def unpack(life: Packed, target: Path) -> None:
    """Write the store of ``life`` to ``target``: who asks for several tiers pays once.

    Raises FormatError for a damaged one, or one of another life than its truth; LimitError for one over MOST_UNPACKED.
    """
    restore(_columns(life.path), target)
    told = {name for block in life.blocks for window in block.windows for name in window.requests}
    if told:
        with Store.open(target) as store:
            held = store.requests(store.resolve(str(CALLERS))).client_id
        if told.isdisjoint(held):
            raise FormatError(
                life.path.name, "it holds no request that its truth names", "Take both from the repository again"
            )


def _columns(path: Path) -> bytes:
    """What is packed in ``path``, of which no more than MOST_UNPACKED is unpacked. Raises as :func:`unpack`."""
    again = "Take it from the repository again, or build it"
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
    try:
        with path.open("rb") as file:
            packed = file.read(MOST_BYTES + 1)
        found = b"" if len(packed) > MOST_BYTES else unpacker.decompress(packed, MOST_UNPACKED + 1)
    except lzma.LZMAError as error:
        raise FormatError(path.name, "it is damaged", again) from error
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise FormatError(path.name, "it cannot be read", again) from error
    if len(packed) > MOST_BYTES:
        raise LimitError(path.name, f"it takes over {MOST_BYTES:,} bytes", again)
    if len(found) > MOST_UNPACKED:
        raise LimitError(path.name, f"it takes over {MOST_UNPACKED:,} bytes unpacked", again)
    if not unpacker.eof or unpacker.unused_data:
        raise FormatError(path.name, "it is damaged", again)
    return found


def read_bundle(folder: Path, tier: str = "") -> Capture:
    """What the files of ``folder`` say, rebuilt; an id that begins with ``tier`` and says nothing else."""
    from teller_core.ingest.reading import How, content_id, hashed, plan

    group = hashed(plan([folder], together=True)[0])
    recording, trees = STAGES.read(group, STAGES.nest, nobody, How(folder.parent, jobs=1))
    return STAGES.rebuild(recording, trees, f"{tier}{content_id(group)[len(tier) :]}", CALLED)


def _imported(folder: Path, tier: int) -> Capture:
    """The same of one tier, without what would give away what was done."""
    capture = cleaned(read_bundle(folder, str(tier)))
    if told := told_by(capture, give_away()):
        raise TellerError(f"The recording at T{tier}", f"its texts hold {', '.join(told)}", "Do not keep it")
    return capture


def _keep(capture: Capture, path: Path) -> None:
    report = capture_report(capture, already_known=False, imported_at=NO_TIME)
    with Store.open(path) as store:
        store.save(capture, nothing_judged(), [], report, level=LOOSE)


def nothing_judged() -> Assessment:
    """An assessment of nothing: who is to judge a life does it."""
    few, many = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    shares, layer = np.empty(0, dtype=np.float64), np.empty(0, dtype=np.uint8)
    return Assessment(
        Baselines([], [], [], layer, few, many, shares, many, shares, shares, shares),
        StepExpectations(many, many, shares, many),
        Candidates(few, few, few, [], layer, many, many, shares, many, few, []),
        RequestExpectations(few, [], many, many, many, shares),
    )
