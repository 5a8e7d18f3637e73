"""How a continuous-batching engine goes from one step to the next: the moves that explain a step's counts.

The engine runs what it runs already, admits waiting requests first come, first served, and computes a prompt in one step
or in chunks of which only the last admitted may be unfinished (vLLM V1's scheduler). A request leaves when its answer is
complete, or is evicted, the newest first, and comes back before those that wait. SGLang stops decoding while it computes
prompts. The costs are negative log likelihoods, set by hand: only their order matters much.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from typing import NamedTuple

from teller_core.data.records import known

PHANTOM = -1
"""A request that the counts show and nothing names: it ran before the recording began, for example."""
FOREVER = 1 << 40
MAX_WAYS = 40
"""Moves of one kind that are tried; more would be guesses."""
LATE_NS = 100_000_000
"""A finish or a first token this much off its time costs 1."""
CROWDED = 0.75
"""Nothing is evicted while the KV cache is less full: each request takes at most a block at a time."""

NEVER, ODD, RARE, UNLIKELY, LIKELY = 6.0, 4.0, 2.0, 1.0, 0.2


class Want(NamedTuple):
    """What is known of a request before its steps are. Times int ns, tokens -1 where not known."""

    arrived: int
    """No step before this can serve it."""
    sure: bool
    """Its place in the queue is known, not only about when it came."""
    prompt: int = -1
    output: int = -1
    most: int = -1
    """An upper bound of its answer's tokens."""
    first: int = -(2**63)
    """When its caller had the first token."""
    end: int = -(2**63)


class Count(NamedTuple):
    """What is known of a step: requests and tokens in prefill and decode; it ended within [low, high] ns."""

    context: int
    context_tokens: int
    generation: int
    generation_tokens: int
    low: int
    high: int
    cache: float = -1.0
    """How full the KV cache was, 0 to 1."""


class State(NamedTuple):
    """Between two steps. ``decoding``: (request, the step that gave its first token, moved on by pauses) in running order;
    ``filling``: (request, prompt tokens to go or -1) of the last step; ``evicted``: (request, tokens of its answer) by turn;
    ``skipped``: requests passed over; ``queue``: how many of the queue have been looked at; ``held``: decoding paused."""

    decoding: tuple[tuple[int, int], ...] = ()
    filling: tuple[tuple[int, int], ...] = ()
    evicted: tuple[tuple[int, int], ...] = ()
    skipped: tuple[int, ...] = ()
    queue: int = 0
    held: bool = False


class Event(NamedTuple):
    """``begin``: ``request`` decodes from this step on; ``end``: it no longer does; ``fill``: its prompt is computed in it."""

    kind: str
    request: int


class Move(NamedTuple):
    """A way to the next step, and how hard it is to believe."""

    state: State
    cost: float
    events: tuple[Event, ...]


class _Run(NamedTuple):
    """Who decodes in a step: those that stay, come back or were evicted just now, and how many are not known."""

    stay: tuple[tuple[int, int], ...]
    cost: float
    resumed: int = 0
    evicted: tuple[tuple[int, int], ...] = ()
    phantoms: int = 0
    held: bool = False


def answer_limit(wants: Sequence[Want], request: int) -> int:
    """Tokens after which the answer of ``request`` is complete."""
    if request == PHANTOM:
        return FOREVER
    want = wants[request]
    return want.output if want.output > 0 else want.most if want.most > 0 else FOREVER


class _Admitted(NamedTuple):
    """Requests admitted, those passed over, and how much of the queue is used up."""

    requests: tuple[int, ...]
    skipped: tuple[int, ...]
    queue: int
    cost: float


class _Seen(NamedTuple):
    """What is known at the ``k``-th step: its count, that of the step before, and of the requests."""

    k: int
    now: Count
    before: Count | None
    wants: Sequence[Want]


_Runs = tuple[tuple[int, int], ...]


def moves(state: State, count: Count, k: int, wants: Sequence[Want], before: Count | None) -> Iterator[Move]:
    """The ways from ``state`` to the ``k``-th step, which has ``count``; the step before it had ``before``."""
    seen = _Seen(k, count, before, wants)
    for done, rest, cost in _completed(state, seen):
        decoding = state.decoding + tuple((request, k - 1) for request in done)
        full = tuple(run for run in decoding if k - run[1] >= answer_limit(wants, run[0]))
        left = tuple(run for run in decoding if run not in full) if full else decoding
        choices = list(_admitted(state, seen, count.context - len(rest)))
        for run in _running(state, left, full, seen):
            for admitted in choices:
                yield _move(state, seen, rest, run=run, admitted=admitted, cost=cost)


def _move(state: State, seen: _Seen, rest: _Runs, *, run: _Run, admitted: _Admitted, cost: float) -> Move:
    k, wants = seen.k, seen.wants
    back = state.evicted[: run.resumed]
    resumed = tuple((request, k - tokens) for request, tokens in back)
    filling = rest + tuple((r, -1 if r == PHANTOM else wants[r].prompt) for r in admitted.requests)
    evicted = tuple((request, k - born) for request, born in run.evicted) + state.evicted[run.resumed :]
    stay = tuple((request, born + 1) for request, born in run.stay) if run.held else run.stay + resumed
    now = () if run.held else tuple(request for request, _ in run.stay)
    was = () if state.held else tuple(request for request, _ in state.decoding)
    here, there = set(now), set(was)
    events = [Event("end", request) for request in was if request not in here]
    events += [Event("begin", request) for request in now if request not in there]
    events += [Event("begin", request) for request, _ in back]
    events += [Event("fill", request) for request, _ in filling]
    after = State(stay + ((PHANTOM, k),) * run.phantoms, filling, evicted, admitted.skipped, admitted.queue, run.held)
    return Move(after, cost + run.cost + admitted.cost, tuple(e for e in events if e.request != PHANTOM))


def _completed(state: State, seen: _Seen) -> Iterator[tuple[tuple[int, ...], tuple[tuple[int, int], ...], float]]:
    """(requests whose prompt was complete after the last step, the one that goes on, cost)."""
    filling, wants, before = state.filling, seen.wants, seen.before
    if not filling or before is None:
        yield (), (), 0.0
        return
    to_go = sum(tokens for _, tokens in filling)
    told = all(tokens >= 0 for _, tokens in filling)
    whole = tuple(request for request, _ in filling)
    late = sum(_off(wants[request].first, before) for request in whole if request != PHANTOM)
    fits = not told or to_go <= before.context_tokens
    yield whole, (), late + (0.0 if fits else UNLIKELY)
    if seen.now.context >= 1:
        last = filling[-1][0]
        remaining = max(to_go - before.context_tokens, 0) if told else -1
        late = sum(_off(wants[request].first, before) for request in whole[:-1] if request != PHANTOM)
        cost = (ODD if fits else 0.0) if told else RARE
        yield whole[:-1], ((last, remaining),), late + cost


def _running(state: State, left: _Runs, full: _Runs, seen: _Seen) -> Iterator[_Run]:
    count = seen.now
    spare = len(left) - count.generation
    if spare == 0:
        yield _Run(left, 0.0 if count.generation_tokens <= count.generation or not state.evicted else LIKELY)
    if spare < 0:
        yield from _short(state, left, full, seen)
        return
    if count.generation == 0 and count.context > 0 and left:
        yield _Run(left, LIKELY, held=True)
    if spare > 0:
        yield from _leaving(left, spare, seen)


def _short(state: State, left: _Runs, full: _Runs, seen: _Seen) -> Iterator[_Run]:
    """More decode than are known to run: back from an eviction, one step too many (scheduled ahead), or nobody known."""
    lack = seen.now.generation - len(left)
    overrun = tuple(run for run in full if seen.k - run[1] == answer_limit(seen.wants, run[0]))
    for resumed in {min(lack, len(state.evicted)), max(0, min(lack - len(overrun), len(state.evicted)))}:
        more = min(lack - resumed, len(overrun))
        phantoms = lack - resumed - more
        plain = 0.0 if seen.now.generation_tokens > seen.now.generation else LIKELY
        cost = resumed * plain + more * UNLIKELY + phantoms * ODD
        yield _Run(left + overrun[:more], cost, resumed=resumed, phantoms=phantoms)


def _leaving(left: _Runs, spare: int, seen: _Seen) -> Iterator[_Run]:
    """Fewer decode than run: some had their answer's end, or the newest were evicted."""
    wants, before = seen.wants, seen.before
    kept = _kept_cache(seen.now, before)
    for evictions in sorted({0, spare, *range(min(spare, 3))}):
        stay, evicted = left[: len(left) - evictions], left[len(left) - evictions :]
        ending = sorted((_ending(run[0], wants, before) + kept, i) for i, run in enumerate(stay))
        crowding = _crowding(before) + LIKELY * evictions if evictions else 0.0
        for gone in islice(combinations(ending, spare - evictions), MAX_WAYS):
            out = {i for _, i in gone}
            cost = sum(price for price, _ in gone) + crowding
            yield _Run(tuple(run for i, run in enumerate(stay) if i not in out), cost, evicted=evicted)


def _ending(request: int, wants: Sequence[Want], before: Count | None) -> float:
    """How hard it is to believe that the answer of ``request`` ended with the step before, not being complete."""
    if request == PHANTOM:
        return LIKELY
    want = wants[request]
    if want.output > 0:
        return NEVER
    return (RARE + UNLIKELY if want.most > 0 else LIKELY) + (_off(want.end, before) if before else 0.0)


def _kept_cache(count: Count, before: Count | None) -> float:
    """A request that ends gives its cache back: one that is no emptier speaks against it."""
    if before is None or before.cache < CROWDED or count.cache < 0:
        return 0.0
    return RARE if count.cache >= before.cache else 0.0


def _crowding(before: Count | None) -> float:
    """What an eviction costs: it needs a full cache."""
    if before is None or before.cache < 0:
        return RARE
    return UNLIKELY if before.cache >= CROWDED else NEVER


def _off(time: int, count: Count) -> float:
    """How far ``time``, noted by a caller, lies from the step that should have caused it; at most ODD."""
    if not known(time):
        return 0.0
    early, late = count.low - time, time - count.high
    return min(ODD * LATE_NS, max(early, late, 0)) / LATE_NS


def _admitted(state: State, seen: _Seen, new: int) -> Iterator[_Admitted]:
    """Who may have been admitted for ``new`` prefills: first come, first served, except where the order is not known."""
    if new <= 0:
        if new == 0:
            yield _Admitted((), state.skipped, state.queue, 0.0)
        return
    wants = seen.wants
    waiting, queue, skipped = list(state.skipped), state.queue, set(state.skipped)
    while queue < len(wants) and wants[queue].arrived <= seen.now.high and len(waiting) < new + 3:
        waiting.append(queue)
        queue += 1
    phantoms = max(0, new - len(waiting))
    for n, some in enumerate(islice(combinations(waiting, new - phantoms), MAX_WAYS)):
        last = max(some, default=-1)
        chosen = set(some)
        jumped = [request for request in waiting if request not in chosen and request < last]
        if n and not state.skipped and all(wants[request].sure for request in jumped):
            continue
        kept = tuple(r for r in waiting if r not in chosen and (r < last or r in skipped))
        cost = phantoms * ODD + sum(ODD if wants[request].sure else UNLIKELY for request in jumped)
        cost += 0.0 if phantoms else _prompts(some, seen.now, wants)
        yield _Admitted(some + (PHANTOM,) * phantoms, kept, max(last + 1, state.queue), cost)


def _prompts(admitted: tuple[int, ...], count: Count, wants: Sequence[Want]) -> float:
    """Whether the prompts of those admitted make the step's tokens; fewer are computed where a prefix was cached."""
    if count.context != len(admitted) or any(wants[request].prompt < 0 for request in admitted):
        return 0.0
    total = sum(wants[request].prompt for request in admitted)
    return 0.0 if total == count.context_tokens else UNLIKELY if total > count.context_tokens else RARE + UNLIKELY
