"""The causes that can be named, from ``taxonomy.toml``. A cause is one table there and one labelled case in the tests."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from teller_core.errors import UnknownName

NOT_A_FAULT = "none.workload_expected"
"""The control class: the cost is explained by the work."""
ACRONYMS = {"gc": "GC", "cpu": "CPU", "io": "I/O", "kv": "KV", "jit": "JIT", "dp": "DP", "hw": "hardware", "moe": "MoE"}


@dataclass(frozen=True)
class Cause:
    """One way to be slow. ``tier`` is the lowest tier at which it may be named (0 to 4), ``plain`` says that it happened."""

    id: str
    title: str
    plain: str
    definition: str
    tier: int
    trace: Sequence[str]
    logs: Sequence[str]
    stays_normal: Sequence[str]
    features: Sequence[str]
    next_check: str
    fix: str
    look_alikes: Mapping[str, str]

    @property
    def layer(self) -> str:
        """frontend, scheduler, host, cuda, gpu, comm or lifecycle."""
        return self.id.partition(".")[0]

    @property
    def called(self) -> str:
        """What people call it: its id in words."""
        return " ".join(ACRONYMS.get(word, word) for word in self.id.partition(".")[2].split("_"))


@cache
def causes() -> Mapping[str, Cause]:
    """All causes by id. Raises ValueError where the taxonomy names a look-alike that does not exist."""
    text = files("teller_core.data").joinpath("taxonomy.toml").read_text("utf-8")
    table = {key: Cause(id=key, **fields) for key, fields in tomllib.loads(text).items()}
    for cause in table.values():
        unknown = [other for other in cause.look_alikes if other not in table and other != NOT_A_FAULT]
        if unknown:
            raise ValueError(f"taxonomy: {cause.id} looks like {unknown}, which no table defines")
    return table


def cause(key: str) -> Cause:
    """The cause ``key``. Raises UnknownName for one that is not in the taxonomy."""
    table = causes()
    if key not in table:
        raise UnknownName("cause", "the taxonomy has no such cause", "See teller_core/data/taxonomy.toml for the list")
    return table[key]
