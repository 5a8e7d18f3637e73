"""Requests: everything that the files say about each, joined over the names it has. A name that fits two stays unjoined."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from teller_core.data.records import ClientRecord, Recording, RequestFact, RequestSpan, known
from teller_core.rebuild.entry import Entry
from teller_core.rebuild.identity import outer_names
from teller_core.rebuild.legs import SLACK as LEG_SLACK
from teller_core.rebuild.legs import hands_over, is_engine
from teller_core.rebuild.routed import join_routed

SLACK = 2_000_000_000
"""ns: how far apart two processes may note one event of a request, a wait for the processor included."""
LONGEST = 86_400 * 10**9
"""ns that a caller may have waited who did not note when it ended."""
SIBLINGS = 16
"""Requests of one trace among which the other leg of one is looked for: the latest."""
GENERATIONS = 64
"""Spans between a request's engine and the outermost span that are followed."""
INNER = frozenset({"added", "queued", "scheduled"})
"""Facts that name a request by the engine's id where there is one."""


class Registry:
    """Requests by the engine's id. An id that is used again (added twice) is another request from then on."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._by_id: defaultdict[str, list[Entry]] = defaultdict(list)
        self._by_name: defaultdict[str, list[Entry]] = defaultdict(list)

    def new(self, engine_id: str) -> Entry:
        """A request not seen before."""
        entry = Entry(engine_id)
        self.entries.append(entry)
        if engine_id:
            self._by_id[engine_id].append(entry)
            for name in outer_names(engine_id):
                self._by_name[name].append(entry)
        return entry

    def called(self, name: str) -> list[Entry]:
        """Requests that may be known as ``name``, in order of appearance."""
        return self._by_name.get(name, [])

    def uses(self, engine_id: str) -> int:
        """How many requests have had ``engine_id`` so far."""
        return len(self._by_id.get(engine_id, ()))

    def at(self, engine_id: str, time: int) -> Entry:
        """The request that has ``engine_id`` at ``time``; a new one where none has."""
        uses = self._by_id.get(engine_id)
        if not uses:
            return self.new(engine_id)
        begun = [entry for entry in uses[1:] if known(entry.first) and known(time) and entry.first <= time]
        return begun[-1] if begun else uses[0]


def join_requests(recording: Recording, problems: Counter[str]) -> Registry:
    """The requests of a recording, ordered by first appearance.

    Problems: ``ambiguous_request_ids``: a name that fits several requests; what it said stands alone. And those of
    :func:`routed.join_routed`.
    """
    registry = Registry()
    facts = sorted(recording.requests, key=lambda fact: (fact.time, fact.line or 0))
    inner = _inner_ids(recording)
    _enter_engine_side(registry, recording, facts, inner)
    mentions: defaultdict[str, list[RequestFact]] = defaultdict(list)
    for fact in facts:
        if fact.kind in INNER and fact.request in inner:
            continue
        if fact.request in inner:
            registry.at(fact.request, fact.time).facts.append(fact)
        else:
            mentions[fact.request].append(fact)
    # What a front end calls it leads to what a router does, and not the other way.
    for name, said in sorted(mentions.items(), key=lambda one: -len(outer_names(one[0]))):
        _join_mentions(registry, name, said, problems)
    _join_spans(registry, recording.spans, problems)
    _join_clients(registry, recording.clients, problems)
    registry.entries = join_routed(registry.entries, problems)
    registry.entries.sort(key=lambda entry: entry.begin() if known(entry.begin()) else 1 << 62)
    return registry


def _inner_ids(recording: Recording) -> set[str]:
    """Ids that the engine's side uses. A front end's name for one of them is none of them."""
    ids = {name for decision in recording.decisions for name in decision.tokens}
    ids |= {name for execution in recording.executions for name in execution.tokens or ()}
    ids |= {fact.request for fact in recording.requests if fact.kind in INNER}
    outer = {name for inner in ids for name in outer_names(inner)[1:]}
    return ids - outer


def _enter_engine_side(registry: Registry, recording: Recording, facts: Sequence[RequestFact], inner: set[str]) -> None:
    added: Counter[tuple[str, bool]] = Counter()
    for fact in facts:
        if fact.kind in INNER and fact.request in inner:
            teller = fact.request, fact.line is None  # a log and a recorder may both tell that one request was added
            added[teller] += fact.kind == "added"
            again = fact.kind == "added" and added[teller] > registry.uses(fact.request)
            entry = registry.new(fact.request) if again else registry.at(fact.request, fact.time)
            entry.facts.append(fact)
            entry.saw(fact.time)
    for decision in sorted(recording.decisions, key=lambda decision: decision.start):
        for name in decision.tokens:
            registry.at(name, decision.start).saw(decision.start)
    for execution in recording.executions:
        for name in execution.tokens or ():
            entry = registry.at(name, execution.start)
            if not known(entry.first):
                entry.saw(execution.start)


def _join_mentions(registry: Registry, name: str, said: Sequence[RequestFact], problems: Counter[str]) -> None:
    """Facts under a name that the engine does not use: to the requests that may be called so, in order of their coming."""
    candidates = sorted(registry.called(name), key=lambda entry: entry.first)
    received = [fact for fact in said if fact.kind == "received"]
    if not candidates:
        candidates = [registry.new(name) for _ in range(max(1, len(received)))]
        for entry, fact in zip(candidates, received, strict=False):
            entry.saw(fact.time)
    if len(candidates) == len(received):
        for entry, fact in zip(candidates, received, strict=True):
            entry.facts.append(fact)
        said = [fact for fact in said if fact.kind != "received"]
    for fact in said:
        fit = candidates if len(candidates) == 1 else _alive(candidates, fact)
        if len(fit) == 1:
            fit[0].facts.append(fact)
        else:
            problems["ambiguous_request_ids"] += 1


def _alive(candidates: Sequence[Entry], fact: RequestFact) -> list[Entry]:
    """Those of ``candidates`` (by first time) that may have been the one meant: the first to come, or the last that came."""
    if not known(fact.time):
        return []
    if fact.kind == "received":
        coming = [
            entry for entry in candidates if known(entry.first) and entry.first + fact.resolution - fact.time >= 0
        ]
        return [entry for entry in coming if entry.first <= fact.time + fact.resolution + SLACK]
    come = [entry for entry in candidates if known(entry.first) and entry.first <= fact.time + fact.resolution]
    return come[-1:]


def _join_spans(registry: Registry, spans: Sequence[RequestSpan], problems: Counter[str]) -> None:
    """Spans of engines make or find requests, those around them are legs of the request that they lead to.

    Problems: ``spans_of_several_requests``: one from which several requests came is a leg of none.
    """
    traces: defaultdict[str, list[Entry]] = defaultdict(list)
    for span in sorted(filter(is_engine, spans), key=lambda span: span.start):
        near = traces[span.trace_id] if span.trace_id else []
        entry = next((one for one in near[-SIBLINGS:] if one.span and hands_over(one.span, span)), None)
        if entry is not None and entry.span is not None:
            entry.legs.append(entry.span)
            entry.span = span
        else:
            near.append(_join_engine_span(registry, span, problems))
    above = _above(registry, {_key(span): span.parent for span in spans if span.span_id})
    around = sorted((span for span in spans if not is_engine(span)), key=lambda span: (span.start, -span.end))
    for span in around:
        called = above.get(_key(span), [])
        if not called and span.leg != "http":
            called = traces.get(span.trace_id, []) or _named(registry, span)
        if len(called) > 1:
            problems["spans_of_several_requests"] += 1
        elif called:
            called[0].legs.append(span)
        elif span.leg != "http":
            entry = registry.new(span.request)
            entry.saw(span.start)
            entry.legs.append(span)
            if span.trace_id:
                traces[span.trace_id].append(entry)


def _join_engine_span(registry: Registry, span: RequestSpan, problems: Counter[str]) -> Entry:
    fit = _near([entry for entry in registry.called(span.request) if entry.span is None], span.start, span.end)
    if len(fit) > 1:
        problems["ambiguous_request_ids"] += 1
    entry = fit[0] if len(fit) == 1 else registry.new(span.request)
    entry.span = span
    if len(fit) != 1:
        entry.saw(span.start)
    return entry


def _above(registry: Registry, parents: Mapping[tuple[str, str], str]) -> defaultdict[tuple[str, str], list[Entry]]:
    """The requests whose engines stand below a span, by the span's trace and id."""
    below: defaultdict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in registry.entries:
        keys: dict[tuple[str, str], None] = {}
        for span in entry.spans():
            key = (span.trace_id, span.parent)
            while key[1] and key not in keys and len(keys) < GENERATIONS:
                keys[key] = None
                key = (key[0], parents.get(key, ""))
        for key in keys:
            below[key].append(entry)
    return below


def _key(span: RequestSpan) -> tuple[str, str]:
    return span.trace_id, span.span_id


def _named(registry: Registry, span: RequestSpan) -> list[Entry]:
    """The requests that a proxy or a caller may have called so, while it waited for them."""
    slack = max(span.resolution, LEG_SLACK)
    return [entry for entry in registry.called(span.request) if _met(entry, span.start, span.end, slack)]


def _join_clients(registry: Registry, clients: Iterable[ClientRecord], problems: Counter[str]) -> None:
    """Callers' records. A request that two of them claim is given to neither."""
    fits: list[tuple[ClientRecord, list[Entry]]] = []
    claims: Counter[int] = Counter()
    for client in clients:
        names = (client.response_id, client.request)
        named = next((called for name in names if name and (called := registry.called(name))), list[Entry]())
        fit = _near(named, client.start, client.end if known(client.end) else client.start + LONGEST)
        fits.append((client, fit))
        claims.update({id(entry) for entry in fit})
    for client, fit in fits:
        alone = len(fit) == 1 and claims[id(fit[0])] == 1
        problems["ambiguous_request_ids"] += bool(fit) and not alone
        entry = fit[0] if alone else registry.new("")
        entry.client = client


def _near(entries: Sequence[Entry], start: int, end: int) -> list[Entry]:
    """Those of ``entries`` that the engine's side first knew while the caller waited; else those that it may have."""
    strictly = [entry for entry in entries if _met(entry, start, end, 0)]
    return strictly or [entry for entry in entries if _met(entry, start, end, SLACK)]


def _met(entry: Entry, start: int, end: int, slack: int) -> bool:
    coarse = max((fact.resolution for fact in entry.facts if known(fact.resolution)), default=0)
    return not known(entry.first) or start - slack - coarse <= entry.first <= end + slack
