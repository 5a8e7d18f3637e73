"""What the lines of one log say together: some name their request, some only follow each other."""

from teller_core.data.records import Pause, Process
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_MS, NS_PER_S, unix_ns
from teller_core.ingest.found import Found, Place
from teller_core.ingest.jsonl import text_of
from teller_core.ingest.logs.facts import FINE, TELLERS, Line, request_fact
from teller_core.ingest.logs.llamacpp import Tasks
from teller_core.ingest.logs.triton import States
from teller_core.ingest.logs.values import Fields, duration, rust_duration

NOT_BELIEVED = 64
"""A time per token that does not divide the time of all tokens to 1 / NOT_BELIEVED of itself tells no number of tokens."""


class Story:
    """What to remember while one log is read."""

    def __init__(self, found: Found, place: Place, name: str) -> None:
        self.found = found
        self.tasks = Tasks(found)
        self.states = States(found)
        self.name = text_of(name, 128) + (f" ({place.file})" if place.file else "")
        """Names the file in ids of requests that have none of their own."""
        self.profiler: dict[tuple[Process, str], int] = {}
        """When a process began to start, or to stop, the engine's own profiler."""

    def tell(self, rule: str, fields: Fields, line: Line) -> int | None:
        """Note what a line known as ``rule`` says. Returns the Unix time (int ns) at which it was written, if it tells it."""
        teller = TELLERS.get(rule)
        if teller is not None:
            teller(self.found, fields, line)
        elif rule.startswith("llamacpp."):
            self.tasks.tell(rule, fields, line)
        elif rule == "triton.state":
            self.states.tell(fields, line)
        elif rule == "tgi.request":
            self._tgi(fields, line)
        elif rule in ("ray.serve", "ray.serve.old"):
            self._served(fields, line)
        elif rule.startswith("vllm.profiler"):
            self._profiler(fields, line)
        elif rule == "router.routed":
            return self._routed(fields, line)
        return None

    def close(self) -> None:
        """The log ends."""
        self.tasks.close()
        self.states.close()

    def _profiler(self, fields: Fields, line: Line) -> None:
        """The engine computes nothing from the line that begins to the one that is done, where the clock tells milliseconds."""
        begins = fields.get("begins")
        key = (line.process, begins or {"started": "Starting", "stopped": "Stopping"}[fields["done"]])
        timed = line.time != UNKNOWN and 0 <= line.resolution <= FINE
        if begins:
            self.profiler[key] = line.time if timed else UNKNOWN
            return
        begun = self.profiler.pop(key, UNKNOWN)
        if timed and begun != UNKNOWN and line.time > begun:
            self.found.pauses.append(Pause(line.process, 0, begun, line.time - begun, "profiler_stop"))

    def _tgi(self, fields: Fields, line: Line) -> None:
        """A request of TGI, which has no id: it is called by its line. Written when the last token has left.

        From the handler's start come validation (tokenizing), the queue, then all steps up to the end; router/src/server.rs.
        """
        total, queue = rust_duration(fields.get("total")), rust_duration(fields.get("queue"))
        validation, inference = rust_duration(fields.get("validation")), rust_duration(fields.get("inference"))
        if total is None or queue is None or validation is None or validation + queue > total:
            self.found.problems["implausible_duration"] += 1
            return
        request, end = f"{self.name}:{line.number}", line.time
        if end == UNKNOWN:
            return
        begun = end - total
        request_fact(self.found, line, request, "received", time=begun)
        request_fact(self.found, line, request, "queued", time=begun + validation)
        request_fact(self.found, line, request, "scheduled", time=begun + validation + queue)
        request_fact(self.found, line, request, "finished")
        request_fact(self.found, line, request, "tgi.queue_time", value=queue)
        tokens = _tokens(inference, rust_duration(fields.get("per_token")))
        if tokens is not None:
            request_fact(self.found, line, request, "output_tokens", value=tokens)

    def _served(self, fields: Fields, line: Line) -> None:
        """An answer of one deployment of Ray Serve. A request may pass several: all name it, and the outermost took longest."""
        took = duration(fields.get("ms"), NS_PER_MS)
        request = text_of(fields.get("request"))
        if took is None:
            self.found.problems["implausible_duration"] += 1
        elif request:
            request_fact(self.found, line, request, "served", value=took)
            if fields.get("status") == "ERROR" or fields.get("status", "")[:1] == "5":
                request_fact(self.found, line, request, "aborted")

    def _routed(self, fields: Fields, line: Line) -> int | None:
        epoch = unix_ns(fields.get("epoch")) if "epoch" in fields else UNKNOWN
        if request := text_of(fields.get("request")):
            request_fact(self.found, line, request, "routed")
        return None if epoch == UNKNOWN or epoch > 1 << 62 or epoch < NS_PER_S else epoch


def _tokens(inference: int | None, per_token: int | None) -> int | None:
    """How many tokens took ``inference`` ns together and ``per_token`` each; None where they do not fit."""
    if not inference or not per_token:
        return None
    tokens = round(inference / per_token)
    fits = abs(inference - tokens * per_token) * NOT_BELIEVED <= max(per_token, tokens)
    return tokens if fits and 0 < tokens < 10**8 else None
