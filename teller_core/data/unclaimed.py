"""Causes of which no saving is claimed, from ``unclaimed.toml``, and by which way: what was so predicted did not come true."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

Whose = Literal["steps", "profiled", "work_first", "requests"]
"""Of steps by what their work predicts; of steps with a profile by replay of their spans, or by that only where their work tells
nothing; of requests with batches made anew.
"""


@cache
def unclaimed() -> Mapping[str, Mapping[Whose, str]]:
    """By cause, whose savings are not claimed, and why."""
    return tomllib.loads(files("teller_core.data").joinpath("unclaimed.toml").read_text("utf-8"))


def why_unclaimed(cause: str, whose: Whose) -> str:
    """Why no such saving of ``cause`` is claimed; empty where one is."""
    why = unclaimed().get(cause, {}).get(whose, "")
    return f"saving not claimed: {why}" if why else ""
