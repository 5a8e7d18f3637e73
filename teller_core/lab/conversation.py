"""The demo's conversation: a real MCP client asks a real server what a person would ask, and then the truth is told."""

import secrets
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teller_core.cli_verbs import Verbs
from teller_core.data.report import CompareReport, DemoReport, SliceReport, TruthReport, WhyReport
from teller_core.errors import TellerError
from teller_core.tell.text import Style, milliseconds, plain

if TYPE_CHECKING:
    from mcp import Client

    from teller_core.lab.truth import Truth

Say = Callable[[str], None]
