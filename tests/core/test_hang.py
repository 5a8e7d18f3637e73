"""From the dumps of four ranks and what a caller measured to the answer: rank 2 did not come, and two requests waited for it."""

import json
import pickle
from pathlib import Path

import pytest

from teller_core.answers import list_captures, slow, why
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from teller_core.tell.layout import Style
from teller_core.tell.text import page
from tests.core.ingest.nccl.flight_dumps import MS, START, dump, entry

GROUPS = {"0": [0, 1, 2, 3], "3": [0, 1, 2, 3]}
HUNG_MS = 60_000
ASKED = [(100 * i, 180) for i in range(20)] + [(1_950, HUNG_MS), (1_980, HUNG_MS)]
"""Of each request, when it was sent and what it took, in ms. Ranks wait from 2,000 on."""


def recorded(folder: Path) -> Path:
    folder.mkdir()
    before = [entry("3", n, 20 * n, done=True, pg_id=1) for n in range(1, 99)]
    for rank in range(4):
        last = [] if rank == 2 else [entry("3", 99, 2_000 + rank, "nccl:_all_gather_base", sizes=[[8, 512]], pg_id=1)]
        status = {"0": (4, 4), "1": (98 if rank == 2 else 99, 98)}
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump(GROUPS, before[-40:] + last, status), 2))
    rows = [
        {
            "rid": f"r{i}",
            "start_ns": START + sent * MS,
            "end_ns": START + (sent + took) * MS,
            "tok_ns": [START + (sent + step) * MS for step in range(30, min(took, 180), 10)],
            "last": {"usage": {"prompt_tokens": 20, "completion_tokens": 15}},
        }
        for i, (sent, took) in enumerate(ASKED)
    ]
    (folder / "client.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("hang")
    with Store.open(folder / "t.db") as opened:
        import_paths([recorded(folder / "capture")], opened)
        yield opened


def test_the_capture_says_which_rank_did_not_come(store: Store) -> None:
    (report,) = list_captures(store).captures
    assert [(finding.cause, finding.rank) for finding in report.findings] == [("comm.rank_missing", 2)]
    assert report.problems == {}
    assert sorted(rank.rank for rank in report.ranks) == [0, 1, 2, 3]
    kept = store.capture(report.id).absences
    assert (kept.rank.tolist(), kept.waiters, kept.certain.tolist()) == ([2], ["0-1,3"], [1])


def test_the_page_of_the_capture_tells_it_with_the_collective_and_who_waits(store: Store) -> None:
    shown = page(list_captures(store), Style(width=200))
    assert "1. A rank did not come to a collective that others wait in" in shown
    assert "comm.rank_missing, confidence 0.85, rank 2, nccl:_all_gather_base" in shown
    assert 'did not call, 99, "nccl:_all_gather_base of 4096 BFloat16 in group 3 (group 3)"' in shown
    assert "ranks that waited there: 0-1,3, 3 ranks" in shown


@pytest.mark.parametrize("request_", ["r20", "r21"])
def test_a_request_that_was_under_way_waited_for_it(store: Store, request_: str) -> None:
    answer = why(store, request_)
    assert answer.verdict == "cause"
    (finding,) = answer.findings
    assert (finding.cause, finding.rank, finding.operator) == ("comm.rank_missing", 2, "nccl:_all_gather_base")
    waited, ranks = finding.evidence
    sent = ASKED[int(request_[1:])][0]
    assert waited.value == pytest.approx(sent + HUNG_MS - 2_000)
    assert (ranks.name, ranks.value) == ("ranks that waited for rank 2", 3)
    assert "in group 3" in (ranks.untrusted_text or "")


def test_a_request_that_had_ended_did_not(store: Store) -> None:
    assert all("comm.rank_missing" not in [f.cause for f in why(store, f"r{i}").findings] for i in range(18))
    assert [row[0] for row in slow(store, limit=2).rows] == [21, 22]
