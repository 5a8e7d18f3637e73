"""Real hangs of 16 ranks: every entry is kept, and the ranks that are named are those that the faults were put into."""

import pickle
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from teller_core.data.records import Recording
from teller_core.ingest.found import Place
from teller_core.ingest.nccl.flight_recorder import read, sniff
from teller_core.judge.first_causes import firsts
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from tests.core.rebuild.recorded_ranks import judged

CORPUS = Path(__file__).parents[5] / "shared" / "traces" / "nccl_fr"
SETS = sorted(path.parent for path in CORPUS.glob("*/reference_missing_ranks.txt"))

pytestmark = pytest.mark.skipif(not SETS, reason="no real flight-recorder dumps beside the checkout (../shared)")


class Reference(NamedTuple):
    """What the faults' own analysis says, and which ranks they were put into."""

    group: str
    description: str
    name: str
    shape: list[int]
    dtype: str
    ranks: list[int]
    injected: list[int]


def reference(folder: Path) -> Reference:
    line = (folder / "reference_missing_ranks.txt").read_text().splitlines()[1]
    group, description, name, size, dtype, ranks = (cell.strip() for cell in line.split("|"))
    injected = re.findall(r"Rank (\d+)", (folder / "fault_injection.log").read_text())
    shape = [int(side) for side in size.split("x")]
    return Reference(
        group, description, name, shape, dtype, [int(r) for r in ranks.split(",")], list(map(int, injected))
    )


def dumps(folder: Path) -> list[Path]:
    return sorted(folder.glob("_dump_*"))


def recording(folder: Path) -> Recording:
    made = Recording()
    for path in dumps(folder):
        found = read(path, Place())
        made.collectives += found.collectives
        made.groups += found.groups
    return made


@pytest.mark.parametrize("folder", SETS, ids=lambda path: path.name)
def test_every_entry_is_kept_as_the_standard_library_reads_it(folder: Path) -> None:
    assert len(dumps(folder)) == 16
    for path in dumps(folder):
        assert sniff(path.read_bytes()[: 1 << 16])
        found, told = read(path, Place()), pickle.loads(path.read_bytes())
        entries: list[dict[str, Any]] = told["entries"]
        assert (found.events, found.kept, dict(found.problems)) == (len(entries), len(entries), {})
        assert [process.rank for process in found.processes] == [int(path.name.rpartition("_")[2])]
        for fact, entry in zip(found.collectives, entries, strict=True):
            members = [int(rank) for rank in told["pg_config"][entry["process_group"][0]]["ranks"][1:-1].split(",")]
            number = entry["p2p_seq_id" if entry["is_p2p"] else "collective_seq_id"]
            assert (fact.group, fact.sequence, fact.time) == (
                entry["process_group"][0],
                number,
                entry["time_created_ns"],
            )
            assert (fact.name, list(fact.members), fact.done) == (entry["profiling_name"], members, entry["retired"])
        assert len(found.groups) == len(told["pg_status"])
        assert {status.group for status in found.groups} == set(told["pg_config"])


@pytest.mark.parametrize("folder", SETS, ids=lambda path: path.name)
def test_the_guilty_ranks_are_the_first_causes(folder: Path) -> None:
    expected = reference(folder)
    table, other = judged(recording(folder))
    found = firsts(table)
    assert sorted(found.rows) == expected.ranks
    assert found.circles == []
    for rank, rows in found.rows.items():
        row = rows[0]
        described = f"{table.group[row]} {table.name[row]} {table.dtype[row]}"
        assert described == f"{expected.group} {expected.name} {expected.dtype}"
        assert expected.description.startswith(table.description[row])
        # What each rank gives to an all-to-all is its own: the reference shows one of them.
        assert table.elements[row] % expected.shape[1] == 0
        assert table.certain[row] and not table.point_to_point[row]
        assert rank not in found.held(rank)
        assert len(found.held(rank)) >= len(found.behind[rank]) > 2
    assert set(other.rank.tolist()) | set(found.rows) == set(expected.injected)


def test_the_rank_whose_device_failed_but_that_called_everything_is_told_by_what_it_never_ended() -> None:
    (folder,) = (path for path in SETS if path.name == "gpu_error_1st")
    _, other = judged(recording(folder))
    assert (other.kind, other.rank.tolist()) == (["not_ended", "not_ended"], [12, 14])


@pytest.mark.slow
@pytest.mark.parametrize("folder", SETS, ids=lambda path: path.name)
def test_what_the_capture_says_of_itself_does_not_come_from_the_answers_beside_the_dumps(
    folder: Path, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "t.db") as store:
        (whole,) = import_paths([folder], store).captures
        (alone,) = import_paths(dumps(folder), store, together=True).captures
    assert [rank.rank for rank in alone.ranks] == list(range(16))
    assert whole.findings == alone.findings
    guilty = [finding.rank for finding in alone.findings if finding.cause == "comm.rank_missing"]
    assert guilty == reference(folder).ranks
    assert {finding.rank for finding in alone.findings} == set(reference(folder).injected)
