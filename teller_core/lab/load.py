"""A bounded streaming load against an OpenAI-compatible server on this machine, and what its client measured.

``client.jsonl`` holds one request a line: ``rid`` (sent as X-Request-Id), ``start_ns``, ``end_ns``, ``tok_ns`` (Unix ns of
every chunk with text), the usage that the server reported, and ``err``.
"""

import http.client
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from teller_core.lab.spaces import enter, inside
from teller_core.lab.words import sentence, vocabulary

TIMEOUT_S = 60.0
MOST_LETTERS = 10
"""Of a token, as the tokenizer of the lab's models learned them."""


class Piece(NamedTuple):
    """The first ``words`` of one of endlessly many texts: the same wherever it has the same number."""

    text: int
    words: int


class Ask(NamedTuple):
    """One request to send: ``at`` seconds after the load began, or later where all connections are busy.

    ``words``: of its prompt, after the pieces that it shares with others. ``properties``: of the JSON object that the answer must
    be, under a schema that no other request has; 0: it may be anything.
    """

    rid: str
    at: float
    words: int
    output: int
    opening: tuple[Piece, ...] = ()
    properties: int = 0


class Target(NamedTuple):
    """A server on this machine and the name under which it serves its model. ``space``: the network namespace that it is in."""

    port: int
    model: str
    space: str = ""


def nothing() -> None:
    """Nobody counts the answers."""


def send(
    target: Target, asks: Sequence[Ask], connections: int, seed: int, done: Callable[[], None] = nothing
) -> list[dict[str, Any]]:
    """Send ``asks`` (ordered by ``at``) over at most ``connections`` at once, call ``done`` after each, return the rows."""
    words = vocabulary()
    chance = random.Random(seed)
    bodies = [_body(target, ask, words, chance) for ask in asks]
    began = time.monotonic()
    with ThreadPoolExecutor(connections, initializer=enter, initargs=(target.space,)) as pool:
        waiting: list[Future[dict[str, Any]]] = []
        for ask, body in zip(asks, bodies, strict=True):
            time.sleep(max(0.0, began + ask.at - time.monotonic()))
            waiting.append(pool.submit(_one, target.port, ask.rid, body, done))
        return [answer.result() for answer in waiting]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the client's record."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def append(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add to the client's record, at once: who is killed keeps what was measured."""
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def healthy(port: int, space: str = "") -> bool:
    """Whether the server on ``port``, of the network namespace ``space`` where one is named, says that it can serve."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.0)
    try:
        with inside(space):
            connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _body(target: Target, ask: Ask, words: list[str], chance: random.Random) -> dict[str, Any]:
    opening = [sentence(random.Random(f"text {piece.text}"), words, piece.words) for piece in ask.opening]
    body: dict[str, Any] = {
        "model": target.model,
        "stream": True,
        "temperature": 0.0,
        "max_tokens": ask.output,
        "prompt": " ".join([*opening, sentence(chance, words, ask.words)]),
    }
    if ask.properties:
        schema = _schema(ask.properties, ask.output, words, chance)
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return body


def _schema(properties: int, tokens: int, words: list[str], chance: random.Random) -> dict[str, Any]:
    """Of an object that cannot end before ``tokens``, whatever a model of ours writes in it."""
    names = [f"{name}_{chance.getrandbits(32):08x}" for name in chance.choices(words, k=properties)]
    text = {"type": "string", "minLength": -(-MOST_LETTERS * tokens // properties)}
    return {
        "type": "object",
        "properties": dict.fromkeys(names, text),
        "required": names,
        "additionalProperties": False,
    }


def _one(port: int, rid: str, body: dict[str, Any], done: Callable[[], None]) -> dict[str, Any]:
    start = time.time_ns()
    times: list[int] = []
    last: dict[str, Any] = {}
    error: str | None = None
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request(
            "POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json", "X-Request-Id": rid}
        )
        response = connection.getresponse()
        if response.status != 200:
            error = f"HTTP {response.status}"
        for line in response:
            if line.startswith(b"data:") and b"[DONE]" not in line:
                _chunk(json.loads(line[5:]), times, last)
    except (OSError, http.client.HTTPException, json.JSONDecodeError) as failure:
        error = type(failure).__name__
    finally:
        connection.close()
    done()
    return {"rid": rid, "start_ns": start, "end_ns": time.time_ns(), "tok_ns": times, "last": last, "err": error}


def _chunk(chunk: dict[str, Any], times: list[int], last: dict[str, Any]) -> None:
    last.update({name: chunk[name] for name in ("id", "usage") if chunk.get(name)})
    if any(choice.get("text") for choice in chunk.get("choices", [])):
        times.append(time.time_ns())
