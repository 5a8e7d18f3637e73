"""Lines that are read at once are read as the long way reads them."""

from pathlib import Path
from typing import Any

import pytest

from teller_core.ingest.found import Place
from teller_core.ingest.logs import reader as engine_log
from teller_core.ingest.logs.patterns import patterns
from teller_core.ingest.logs.usual import find, usuals
from tests.core.ingest.shown import shown

NEAR = 1_795_961_987_000_000_000
HEADS = [
    "INFO 11-29 14:06:59 [loggers.py:199] ",
    "INFO 11-29 14:06:59 metrics.py:349] ",
    "(APIServer pid=29061) INFO 11-29 14:06:59 [loggers.py:199] ",
    "(EngineCore_DP1 pid=7) DEBUG 11-29 14:06:59.123 [v1/engine/core.py:9] ",
    "[2026-11-29 14:06:59] ",
    "[2026-11-29 14:06:59 DP1 TP0] ",
    "[2026-11-29 14:06:59,093 TP3] ",
]
ACCESS = [
    'INFO:     10.0.0.1:38822 - "POST /v1/completions HTTP/1.1" 200 OK',
    '(APIServer pid=29061) INFO:     127.0.0.1:5 - "GET /metrics HTTP/1.1" 404 Not Found',
    'INFO:     10.0.0.1:38822 - "POST /v1/completions?api_key=abcdef123456 HTTP/1.1" 200 OK',
    'INFO:     10.0.0.1:38822 - "GET /sk-abcdefgh12345678/x HTTP/1.1" 404 Not Found',
]
SAMPLES = [each.sample for each in patterns() if each.usual is not None]
LINES = [head + sample for head in HEADS for sample in SAMPLES] + ACCESS


def read(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return shown("engine_log", engine_log.read(path, Place(near=NEAR, salt=b"s")))


def nobody(_line: str) -> None:
    return None


@pytest.mark.parametrize("line", LINES)
def test_a_line_says_the_same_both_ways(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    around = ["INFO:     Started server process [29061]", line, line]
    short = read(tmp_path / "input.log", around)
    monkeypatch.setattr(engine_log, "find", nobody)
    assert short == read(tmp_path / "input.log", around)


def test_every_kind_is_met() -> None:
    met = {found[0].rule for line in LINES if (found := find(line)) is not None}
    assert met == {usual.rule for usual in usuals()}


@pytest.mark.parametrize("line", ACCESS[2:])
def test_a_path_that_may_hold_a_secret_goes_the_long_way(line: str) -> None:
    assert find(line) is None


def test_a_usual_line_inside_a_prompt_is_not_told(tmp_path: Path) -> None:
    lines = [
        "2026-11-29T14:06:59.123456Z DEBUG generate{}: text_generation_router::server: router/src/server.rs:1: Input: tell",
        "INFO 11-29 14:06:59 [loggers.py:199] " + SAMPLES[0],
        "2026-11-29T14:07:00.000000Z  INFO text_generation_router::server: router/src/server.rs:2: Success",
    ]
    text = read(tmp_path / "input.log", lines)
    assert "vllm" not in text
    assert "other continuation 1" in text


def test_samples_are_whole(tmp_path: Path) -> None:
    """Nothing that a pattern's own sample says is missed by the expression that reads it at once."""
    for each in patterns():
        if each.usual is not None:
            match: Any = each.usual.fullmatch(each.sample)
            if match is not None:
                assert {k: v for k, v in match.groupdict().items() if v is not None} == dict(each.fields)
