"""How each request went, in one row: what a question about the requests of many captures reads, and nothing else."""

from dataclasses import dataclass

from teller_core.data.parts import PHASES
from teller_core.data.table import Int32, Int64, Text, UInt8, check_columns


@dataclass(frozen=True)
class Outcomes:
    """One row an answer that was made at import: ``request`` int32 is the request's number, ``metric`` what it was asked by.

    ``began`` int64 ns, its earliest time; ``value`` int64 ns, UNKNOWN where nobody measured it: the sum of the phases, int64 ns
    each, those without a source UNKNOWN. ``verdict`` and the ``cause`` and ``rank`` (its number, -1 for none) that its first
    finding names, empty without one. What was asked for, int32, -1 where it is not known: ``engine``, ``prompt_tokens``,
    ``output_tokens``, ``cached_tokens``; ``failed`` uint8; ``finish_reason``, the engine's word.
    """

    request: Int32
    metric: Text
    began: Int64
    value: Int64
    verdict: Text
    cause: Text
    rank: Int32
    engine: Int32
    prompt_tokens: Int32
    output_tokens: Int32
    cached_tokens: Int32
    failed: UInt8
    finish_reason: Text
    before_server: Int64
    front_end: Int64
    queue: Int64
    remote_kv_wait: Int64
    own_prefill: Int64
    between_own_chunks: Int64
    decode: Int64
    preempted: Int64
    recompute: Int64
    delivery: Int64
    capture_stall: Int64
    unexplained: Int64

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)

    def phases(self) -> dict[str, Int64]:
        """int64 ns a request of each phase, by its name, in the order of PHASES."""
        return {phase: getattr(self, phase) for phase in PHASES}
