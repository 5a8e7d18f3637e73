"""Whole imports of damaged captures: a TellerError, or a stored capture that answers. Never anything else."""

import gzip
import json
from contextlib import suppress
from pathlib import Path
from random import Random

from teller_core import answers, slices
from teller_core.errors import TellerError
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from tests.fuzz.checks import DATA, READERS
from tests.fuzz.mutations import damaged, odd_document

CAPTURES = DATA / "captures"
CASES = {
    name: [path for case in sorted((DATA / name).glob("*")) for path in sorted(case.glob("input*"))] for name in READERS
}
BINARY = ("nsight_sqlite", "flight_recorder", "chakra", "otlp_protobuf")
MOST_ASKED = 6
"""Requests of a capture that are asked about."""


def mixed(folder: Path, chance: Random) -> None:
    """Put a few cases of any formats into ``folder``, as they are or almost, together a capture of nonsense."""
    for at in range(chance.choice([1, 2, 4, 8])):
        name = chance.choice(list(CASES))
        path = chance.choice(CASES[name])
        data = path.read_bytes()
        if chance.random() < 0.7:
            data = odd_document(name, data, chance)
        (folder / f"{chance.choice(['', 'rank3_', 'host-12-', 'server.', 'torch-77-'])}{at}{path.suffix}").write_bytes(
            data
        )


def recorded(name: str, folder: Path, chance: Random) -> None:
    """Put a real capture into ``folder``, one to three of its files changed, or gone, or there twice."""
    files = sorted(path for path in (CAPTURES / name).rglob("*") if path.is_file())
    changed = chance.sample(files, min(len(files), chance.choice([1, 2, 3])))
    for path in files:
        data = path.read_bytes()
        to = folder / path.relative_to(CAPTURES / name)
        to.parent.mkdir(parents=True, exist_ok=True)
        if path in changed:
            what = chance.random()
            if what < 0.1:
                continue
            if what < 0.2:
                (to.parent / f"again-{to.name}").write_bytes(data)
            elif what < 0.4:
                data = damaged("", data, b"", chance)
            else:
                packed = data[:2] == b"\x1f\x8b"
                data = gzip.compress(odd_document("", data, chance), 1) if packed else odd_document("", data, chance)
        to.write_bytes(data)


def imported(folder: Path, store_at: Path) -> int:
    """Import ``folder`` and ask all that can be asked; the captures that were stored. What is answered is JSON."""
    with Store.open(store_at) as store:
        with suppress(TellerError):
            import_paths([folder], store, jobs=1)
        captures = answers.list_captures(store)
        json.loads(captures.model_dump_json())
        for capture in captures.captures:
            _ask(store, capture.id)
        return len(captures.captures)


def _ask(store: Store, capture: str) -> None:
    rows = answers.slow(store, capture=capture).rows
    for metric in ("ttft", "tpot", "itl_max"):
        answers.slow(store, capture=capture, metric=metric)
    with suppress(TellerError):
        answers.slow(store, capture=capture, view="horizontal").model_dump_json()
    for row in rows[:MOST_ASKED]:
        report = answers.why(store, str(row[0]), capture=capture)
        json.loads(report.model_dump_json())
        with suppress(TellerError):
            slices.causal_slice(store, f"request {row[0]}", capture=capture).model_dump_json()
    for name in ("aten::mm", "step"):
        with suppress(TellerError):
            answers.explain_operator(store, name, capture=capture).model_dump_json()
    with suppress(TellerError):
        answers.compare(store, capture, capture).model_dump_json()
