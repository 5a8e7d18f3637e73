"""The load's client, against a small server that streams as the real one does."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from teller_core.lab.load import Ask, Piece, Target, healthy, send


class _Server(BaseHTTPRequestHandler):
    seen: list[tuple[str, dict[str, Any]]]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.headers["X-Request-Id"], body))
        self.send_response(503 if body["max_tokens"] == 0 else 200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(body["max_tokens"]):
            self._chunk({"id": "x", "choices": [{"text": f"w{number} "}]})
        self._chunk({"id": "x", "choices": [{"text": ""}], "usage": {"completion_tokens": body["max_tokens"]}})
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, content: dict[str, Any]) -> None:
        data = b"data: " + json.dumps(content).encode() + b"\n\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[int]:
    _Server.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield int(running.server_address[1])
        running.shutdown()
        thread.join()


def test_every_chunk_with_text_has_its_time(server: int) -> None:
    done: list[int] = []
    asks = [Ask("a", 0.0, 5, 3), Ask("b", 0.01, 9, 6)]
    rows = send(Target(server, "m"), asks, 2, 1, lambda: done.append(1))
    assert [row["rid"] for row in rows] == ["a", "b"]
    assert [len(row["tok_ns"]) for row in rows] == [3, 6]
    assert len(done) == 2
    for row in rows:
        assert row["err"] is None
        assert row["last"] == {"id": "x", "usage": {"completion_tokens": len(row["tok_ns"])}}
        assert row["start_ns"] <= row["tok_ns"][0] <= row["tok_ns"][-1] <= row["end_ns"]


def test_the_server_gets_the_request_ids_and_the_same_prompts_for_the_same_seed(server: int) -> None:
    for _ in range(2):
        send(Target(server, "m"), [Ask("a", 0.0, 50, 1)], 1, 9, lambda: None)
    assert [rid for rid, _ in _Server.seen] == ["a", "a"]
    assert _Server.seen[0] == _Server.seen[1]
    assert len(_Server.seen[0][1]["prompt"].split()) == 50


def test_a_refusal_is_a_row_with_its_status(server: int) -> None:
    (row,) = send(Target(server, "m"), [Ask("a", 0.0, 5, 0)], 1, 1, lambda: None)
    assert (row["err"], row["tok_ns"]) == ("HTTP 503", [])


def test_nobody_listening_is_a_row_with_its_error_and_not_healthy(server: int) -> None:
    assert healthy(server)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as closed:
        port = int(closed.server_address[1])
    assert not healthy(port)
    (row,) = send(Target(port, "m"), [Ask("a", 0.0, 5, 1)], 1, 1, lambda: None)
    assert row["err"] == "ConnectionRefusedError"


def test_prompts_share_what_their_pieces_share_and_nothing_else(server: int) -> None:
    asks = [Ask("a", 0.0, 5, 1, (Piece(0, 9), Piece(7, 4))), Ask("b", 0.0, 5, 1, (Piece(0, 6), Piece(8, 4)))]
    send(Target(server, "m"), asks, 1, 1, lambda: None)
    first, second = [body["prompt"].split() for _, body in _Server.seen]
    assert (len(first), len(second)) == (18, 15)
    assert first[:6] == second[:6]
    assert first[6:15] != second[6:15]


def test_every_schema_is_new_and_its_object_longer_than_the_answer(server: int) -> None:
    send(Target(server, "m"), [Ask(rid, 0.0, 5, 16, (), 3) for rid in "ab"], 1, 1, lambda: None)
    schemas = [body["response_format"]["json_schema"]["schema"] for _, body in _Server.seen]
    names = [set(schema["properties"]) for schema in schemas]
    assert all(len(each) == 3 and set(schema["required"]) == each for each, schema in zip(names, schemas, strict=True))
    assert names[0].isdisjoint(names[1])
    assert all(sum(text["minLength"] for text in schema["properties"].values()) >= 16 * 10 for schema in schemas)
