"""One decision of a continuous-batching scheduler: who computes how many tokens in the next step, who is evicted, who waits.

The rules are those that vLLM documents for its V1 scheduler (first come, first served, chunked prefill, the last admitted is
evicted first), with the variants in :class:`Order` that other engines use.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple


class Order(IntEnum):
    """Who comes first in a step."""

    ADMITTED = 0
    """Those that run, in the order of their admission; then those that wait (vLLM V1)."""
    DECODES = 1
    """Those that decode, those whose prompt is being computed, those that wait (transformers)."""
    PROMPTS = 2
    """Prompts that are being computed, then decodes, then those that wait."""
    APART = 3
    """A step computes prompts, of those that run and of those that wait, or else decodes (SGLang without mixed chunks)."""


@dataclass(frozen=True)
class Limits:
    """What a scheduler may put into a step. None: no limit was seen. ``tokens`` of a step, ``requests`` admitted at a time,
    ``blocks`` of the KV cache of ``block`` tokens each. ``chunked``: a prompt may be cut. ``depth``: steps that are decided on
    before the first of them has ended. ``ranked``: the one that comes last by rank is evicted first, else the last admitted.
    """

    order: Order = Order.ADMITTED
    tokens: int | None = None
    requests: int | None = None
    blocks: int | None = None
    block: int = 16
    chunked: bool = True
    depth: int = 1
    ranked: bool = False


class Share(NamedTuple):
    """What one request gets of a step."""

    request: int
    tokens: int
    filling: bool
    """It computes its prompt, or again what an eviction threw away; else it decodes."""
    held: int
    """Tokens in the cache before."""


@dataclass(slots=True)
class Queue:
    """What a scheduler knows of its requests, by their numbers. ``running`` by admission; ``waiting``, the next one first;
    ``held`` tokens in the cache; ``ahead``: of a prompt still to compute; ``turn``: decodes done; ``units``: tokens of each
    decode; ``rank``: who waits longest, or by priority; ``lost``: evicted in the middle of the answer; ``kept``: tokens that
    are still cached when one comes back.
    """

    units: dict[int, Sequence[int]] = field(default_factory=dict[int, Sequence[int]])
    running: list[int] = field(default_factory=list[int])
    waiting: list[int] = field(default_factory=list[int])
    held: dict[int, int] = field(default_factory=dict[int, int])
    ahead: dict[int, int] = field(default_factory=dict[int, int])
    turn: dict[int, int] = field(default_factory=dict[int, int])
    lost: set[int] = field(default_factory=set[int])
    kept: dict[int, int] = field(default_factory=dict[int, int])
    rank: dict[int, int] = field(default_factory=dict[int, int])

    def arrive(self, request: int, *, prompt: int, cached: int, units: Sequence[int], rank: int, kept: int = 0) -> None:
        """Put a new request behind those that wait and come before it by rank."""
        self.units[request], self.rank[request], self.kept[request] = units, rank, kept
        self.held[request], self.ahead[request], self.turn[request] = cached, prompt, 0
        insort(self.waiting, request, key=self.rank.__getitem__)

    def wants(self, request: int) -> int:
        """Tokens that the request could compute next; 0 for one that is done."""
        if self.ahead[request] > 0:
            return self.ahead[request]
        units, turn = self.units[request], self.turn[request]
        return units[turn] if turn < len(units) else 0

    def blocks(self, block: int) -> int:
        """KV blocks that the requests that run hold."""
        return sum(-(-self.held[request] // block) for request in self.running)


def choose(queue: Queue, limits: Limits) -> list[Share]:
    """The next step. Evictions and admissions are made in ``queue``; what the step computes is not yet counted there: see
    :func:`computed`. Empty where nobody can run.
    """
    batch: list[Share] = []
    left = limits.tokens if limits.tokens is not None else 1 << 60
    prompts_only = limits.order is Order.APART and _prompts_come(queue, limits)
    evicted = False
    for request in _in_order(queue, limits.order):
        if left <= 0:
            break
        if request not in queue.running or (prompts_only and queue.ahead[request] == 0):
            continue
        tokens = min(queue.wants(request), left)
        if tokens == 0:
            continue
        ran = len(queue.running)
        left += _make_room(queue, limits, batch, request, tokens)
        evicted |= len(queue.running) < ran
        if request not in queue.running:
            continue
        batch.append(_share(queue, request, tokens))
        left -= tokens
    if not evicted and (limits.order is not Order.APART or prompts_only or not batch):
        _admit(queue, limits, batch, left)
    return batch


def computed(queue: Queue, batch: Sequence[Share]) -> tuple[list[int], list[int]]:
    """Count what ``batch`` computes; the requests that it gives their first token, and those that it ends."""
    answered: list[int] = []
    ended: list[int] = []
    for share in batch:
        request = share.request
        queue.held[request] += share.tokens
        if not share.filling:
            queue.turn[request] += 1
        else:
            queue.ahead[request] -= share.tokens
            if queue.ahead[request] > 0:
                continue
            if request in queue.lost:
                queue.lost.discard(request)
                queue.turn[request] += 1
            else:
                answered.append(request)
        if queue.turn[request] >= len(queue.units[request]):
            ended.append(request)
    return answered, ended


def forget(queue: Queue, request: int) -> None:
    """Take out a request that has ended."""
    queue.running.remove(request)
    for table in (queue.units, queue.held, queue.ahead, queue.turn, queue.rank, queue.kept):
        table.pop(request, None)


def _share(queue: Queue, request: int, tokens: int) -> Share:
    return Share(request, tokens, queue.ahead[request] > 0, queue.held[request])


def _in_order(queue: Queue, order: Order) -> list[int]:
    if order is Order.ADMITTED:
        return list(queue.running)
    decodes = [request for request in queue.running if queue.ahead[request] == 0]
    prompts = [request for request in queue.running if queue.ahead[request] > 0]
    return decodes + prompts if order is Order.DECODES else prompts + decodes


def _prompts_come(queue: Queue, limits: Limits) -> bool:
    """Whether a step of prompts alone is possible."""
    if any(queue.ahead[request] > 0 for request in queue.running):
        return True
    full = limits.requests is not None and len(queue.running) >= limits.requests
    return (
        bool(queue.waiting) and not full and _fits(queue, limits, [], queue.waiting[0], queue.wants(queue.waiting[0]))
    )


def _fits(queue: Queue, limits: Limits, batch: Sequence[Share], request: int, tokens: int) -> bool:
    """Whether the cache holds the request's tokens beside those of all others and what the batch adds to them."""
    if limits.blocks is None:
        return True
    added = {share.request: share.tokens for share in batch}
    added[request] = tokens
    holders = {*queue.running, request}
    need = sum(-(-(queue.held[one] + added.get(one, 0)) // limits.block) for one in holders)
    return need <= limits.blocks


def _make_room(queue: Queue, limits: Limits, batch: list[Share], request: int, tokens: int) -> int:
    """Evict the last admitted, or by rank, until the request fits, itself at last; the tokens that these had of the batch."""
    back = 0
    while request in queue.running and not _fits(queue, limits, batch, request, tokens):
        victim = max(queue.running, key=queue.rank.__getitem__) if limits.ranked else queue.running[-1]
        back += sum(share.tokens for share in batch if share.request == victim)
        batch[:] = [share for share in batch if share.request != victim]
        evict(queue, victim)
    return back


def evict(queue: Queue, request: int) -> None:
    """Throw away what a running request has in the cache: it waits, first of all, to compute it again."""
    if queue.ahead[request] == 0:
        queue.lost.add(request)
    kept = min(queue.kept.get(request, 0), queue.held[request])
    queue.ahead[request] = queue.held[request] + queue.wants(request) - kept
    queue.held[request] = kept
    queue.running.remove(request)
    queue.waiting.insert(0, request)


def _admit(queue: Queue, limits: Limits, batch: list[Share], left: int) -> None:
    while queue.waiting and left > 0:
        if limits.requests is not None and len(queue.running) >= limits.requests:
            return
        request = queue.waiting[0]
        wanted = queue.wants(request)
        tokens = min(wanted, left)
        if (tokens < wanted and not limits.chunked) or not _fits(queue, limits, batch, request, tokens):
            return
        queue.running.append(queue.waiting.pop(0))
        batch.append(_share(queue, request, tokens))
        left -= tokens
