"""One request and everything that files say about it."""

from dataclasses import dataclass, field

from teller_core.data.records import ClientRecord, RequestFact, RequestSpan, known
from teller_core.data.table import UNKNOWN


@dataclass(slots=True)
class Entry:
    """One request and the records about it."""

    engine_id: str
    first: int = UNKNOWN
    """The earliest time at which the engine's side knows it, last the latest."""
    last: int = UNKNOWN
    facts: list[RequestFact] = field(default_factory=list[RequestFact])
    span: RequestSpan | None = None
    """That of the engine which gave the answer."""
    legs: list[RequestSpan] = field(default_factory=list[RequestSpan])
    """The other spans of it: of a prefill engine, of gateways and callers."""
    client: ClientRecord | None = None

    def begin(self) -> int:
        """ns: the earliest time known of it, UNKNOWN where there is none."""
        times = [self.first, *(fact.time for fact in self.facts)]
        times += [self.client.start] if self.client else []
        times += [span.start for span in self.spans()]
        return min(filter(known, times), default=UNKNOWN)

    def spans(self) -> list[RequestSpan]:
        """All spans of it."""
        return [*([self.span] if self.span else ()), *self.legs]

    def saw(self, time: int) -> None:
        """The engine's side knew it at ``time``."""
        if known(time):
            self.first = min(self.first, time) if known(self.first) else time
            self.last = max(self.last, time)
