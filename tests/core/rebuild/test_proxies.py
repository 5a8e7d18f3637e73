"""A proxy's access log joined to what the engine and the caller say of the same requests."""

from collections import Counter
from pathlib import Path

import pytest

from teller_core.data.records import ClientRecord, FileRead, Process, Recording, RequestFact
from teller_core.data.table import UNKNOWN
from teller_core.ingest.found import Place
from teller_core.ingest.proxies.access_log import read
from teller_core.rebuild.capture import rebuild

MS = 1_000_000
AT = 1_791_640_536_000 * MS
ID = "4f9d0a3b1c2d4e5f60718293a4b5c6d7"


def engine(*, received: int, done: int) -> list[RequestFact]:
    """What an engine's log says of the request, at these ms after AT, by a clock of microseconds."""
    server = Process("", 7, "frontend")
    name = f"chatcmpl-{ID}"
    return [
        RequestFact(server, AT + received * MS, 1000, name, "received"),
        RequestFact(server, AT + received * MS, 1000, f"{name}-aa0394c2", "added"),
        RequestFact(server, AT + done * MS, 1000, name, "finished"),
    ]


def joined(tmp_path: Path, line: str, facts: list[RequestFact], clients: list[ClientRecord] | None = None):
    """The requests of a capture of a proxy's ``line``, what the engine's log says, and callers' records."""
    path = tmp_path / "access.log"
    path.write_text(line + "\n")
    spans = read(path, Place(), None).spans
    recording = Recording(
        files=[FileRead("access.log", "access_log", 1)], requests=facts, spans=spans, clients=clients or []
    )
    return rebuild(recording, [], capture_id="0a", name="a").requests


def envoy(status: int = 200, request: str = ID) -> str:
    return f'[2026-10-10T13:55:36.000Z] "POST /v1/x HTTP/1.1" {status} - 5 5 1226 119 "-" "a" "{request}" "h" "1.2.3.4:8000"'


def test_the_way_to_the_server_is_from_the_proxys_receipt_to_the_servers(tmp_path: Path) -> None:
    requests = joined(tmp_path, envoy(), engine(received=300, done=1200))
    assert requests.engine_id == [f"chatcmpl-{ID}-aa0394c2"]
    assert requests.client_start.tolist() == [AT]
    assert requests.received.tolist() == [AT + 300 * MS]
    assert requests.client_end.tolist() == [AT + 1226 * MS]


def test_a_proxys_stamp_of_whole_seconds_is_placed_around_what_it_called(tmp_path: Path) -> None:
    line = f'h - - [10/Oct/2026:13:55:37 +0000] "POST /v1/x HTTP/1.1" 200 5 "-" "a" rt=1.226 urt="1.2" request_id={ID}'
    requests = joined(tmp_path, line, engine(received=10, done=1220))
    assert (requests.client_end - requests.client_start).tolist() == [1226 * MS]
    assert AT - 6 * MS <= requests.client_start[0] <= AT + 10 * MS


def test_what_the_caller_measured_stands_before_what_the_proxy_did(tmp_path: Path) -> None:
    caller = ClientRecord(ID, AT - 50 * MS, AT + 1300 * MS, (AT + 400 * MS, AT + 1290 * MS), 10, 2)
    requests = joined(tmp_path, envoy(), engine(received=300, done=1200), [caller])
    assert len(requests.number) == 1
    assert (requests.client_start[0], requests.client_end[0]) == (AT - 50 * MS, AT + 1300 * MS)


@pytest.mark.parametrize("request_id", ["another-0000", "-"])
def test_without_the_engines_id_it_is_a_request_of_its_own(tmp_path: Path, request_id: str) -> None:
    requests = joined(tmp_path, envoy(request=request_id), engine(received=300, done=1200))
    took = Counter((requests.client_end - requests.client_start)[requests.client_end != UNKNOWN].tolist())
    assert len(requests.number) == 2
    assert took == Counter([1226 * MS])


@pytest.mark.parametrize(("status", "failed"), [(200, 0), (499, 1), (503, 1), (0, 1)])
def test_a_status_that_is_no_success_is_a_failure(tmp_path: Path, status: int, failed: int) -> None:
    assert joined(tmp_path, envoy(status), []).failed.tolist() == [failed]


@pytest.mark.parametrize(
    ("answer", "times", "before"),
    [
        (1234, 'rt=3.750 uct="0.001" uht="0.010" urt="0.749"', 3002),
        (1234, 'rt=0.750 uct="0.000" uht="0.010" urt="0.751"', 0),
        (1234, 'rt=2.000 uct="0.100, 0.003" uht="-, 0.900" urt="0.500, 1.400"', 603),
        (10_000_000, 'rt=3.750 uct="0.001" uht="0.010" urt="0.749"', None),
        (1234, 'rt=0.750 urt="-"', None),
        (1234, 'rt=0.750 uct="0.001"', None),
    ],
    ids=["waited for", "rounded", "tried twice", "large answer", "not sent on", "not told"],
)
def test_what_nginx_took_beside_its_upstream_came_before_it(
    tmp_path: Path, answer: int, times: str, before: int | None
) -> None:
    line = f'h - - [10/Oct/2026:13:55:37 +0000] "POST /v1/x HTTP/1.1" 200 {answer} "-" "a" {times} request_id={ID}'
    requests = joined(tmp_path, line, [])
    known = requests.received != UNKNOWN
    assert (requests.received - requests.client_start)[known].tolist() == ([] if before is None else [before * MS])
