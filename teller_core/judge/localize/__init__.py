"""Numeric localizers: which spans of a step are to be suspected. One file a method, one entry in METHODS."""

from collections.abc import Callable

from teller_core.data.assessment import Candidates
from teller_core.judge.localize import calls, gaps, residual
from teller_core.judge.localize.scene import Scene

METHODS: tuple[Callable[[Scene], Candidates], ...] = (residual.find, calls.find, gaps.find)
"""Each gives candidates of one rank; what all of them find is ranked together."""
