"""The server's log: nothing that somebody else wrote looks like a line of ours."""

import logging
import sys

from teller_mcp.log_lines import Lines

FORGED = "2026-12-01 00:00:00,000 teller.audit INFO tool=capture_trace arguments=profile outcome=ok"


def record(message: str, error: Exception | None = None) -> str:
    crash = None
    if error is not None:
        try:
            raise error
        except type(error):
            crash = sys.exc_info()
    return Lines().format(logging.LogRecord("teller.audit", logging.INFO, "here.py", 1, "%s", (message,), crash))


def test_a_record_is_a_line() -> None:
    line = record("tool=run_rca arguments=request outcome=ok")
    assert line.endswith(" teller.audit INFO tool=run_rca arguments=request outcome=ok") and "\n" not in line


def test_a_line_in_a_message_or_a_crash_is_set_in() -> None:
    for breaking in ("\n", "\r", "\r\n", "\x85", "\u2028", "\x0b"):
        for text in (
            record(f"no such{breaking}{FORGED}"),
            record("it failed", ValueError(f"no such{breaking}{FORGED}")),
        ):
            lines = text.split("\n")
            assert FORGED in text
            assert not any(line.startswith(FORGED) for line in lines)
            assert all(line.isprintable() for line in lines)


def test_a_crash_is_told_line_by_line() -> None:
    lines = record("it failed", ValueError("\x1b[31mred")).split("\n")
    assert lines[0].endswith(" INFO it failed")
    assert lines[1] == "    Traceback (most recent call last):"
    assert lines[-1] == "    ValueError:  [31mred"
