"""Requests of Triton by the states that its core logs at verbosity 1: INITIALIZED, PENDING, EXECUTING, RELEASED."""

from teller_core.ingest.found import Found
from teller_core.ingest.jsonl import text_of
from teller_core.ingest.logs.facts import Line, request_fact
from teller_core.ingest.logs.values import Fields

ANONYMOUS = "<id_unknown>"
MAX_OPEN = 1 << 16
KINDS = {"PENDING": "queued", "EXECUTING": "scheduled", "FAILED_ENQUEUE": "aborted"}


class States:
    """Requests that have begun and not ended, by id.

    The models of an ensemble run as requests of the same id inside the one that asked: the request ends with the last of
    them. Requests without an id are told apart only while there is no more than one of them at a time.
    """

    def __init__(self, found: Found) -> None:
        self.found = found
        self.open: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.anonymous = 0
        self.mixed = False

    def tell(self, fields: Fields, line: Line) -> None:
        """A request changes its state. Problems: ``requests_without_id``."""
        name, to = text_of(fields.get("request")), fields.get("to", "")
        begins = to == "INITIALIZED"
        if begins and name not in self.open and len(self.open) < MAX_OPEN:
            self.anonymous += name == ANONYMOUS
            self.names[name] = f"anonymous {self.anonymous}" if name == ANONYMOUS else name
            request_fact(self.found, line, self.names[name], "received")
        if name not in self.names:
            return
        if begins:
            self.mixed |= name == ANONYMOUS and self.open.get(name, 0) > 0
            self.open[name] = self.open.get(name, 0) + 1
        elif to in KINDS and not self._unsure(name):
            request_fact(self.found, line, self.names[name], KINDS[to])
        elif to == "RELEASED":
            self._released(name, line)

    def _unsure(self, name: str) -> bool:
        return name == ANONYMOUS and self.mixed

    def _released(self, name: str, line: Line) -> None:
        self.open[name] = self.open.get(name, 1) - 1
        if self.open[name] > 0:
            return
        if self._unsure(name):
            self.found.problems["requests_without_id"] += 1
            self.mixed = False
        else:
            request_fact(self.found, line, self.names[name], "finished")
        del self.open[name], self.names[name]

    def close(self) -> None:
        """The log ends: what is open stays without an end."""
        self.open.clear()
        self.names.clear()
