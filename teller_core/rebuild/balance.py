"""Whether what was scheduled for each request adds up, from records that know nothing of one another.

scheduled = prompt - cached - remote + recomputed + rejected + surplus + unused + output - 1

An answer's last token is never computed on. ``recomputed`` is what an eviction threw away and was not found in the cache
again; ``rejected`` are guesses that the model did not confirm, ``surplus`` confirmed ones beyond the end of the answer,
``unused`` what was scheduled for a request that had ended or been evicted by the time it ran. A record that were lost, or
read wrongly, would break the sum; the decision with which a request comes back, the one that could be missed, says that it is.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from teller_core.data.capture import Balance
from teller_core.data.records import Decision, Outcome, Recording
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.engines import place
from teller_core.rebuild.requests import Entry, Registry

TERMS = ("scheduled", "prompt", "cached", "remote", "recomputed", "rejected", "surplus", "unused", "output")
FROM_OUTCOMES = ("output", "rejected", "surplus", "unused")
ENDED = frozenset({"ended", "aborted"})


class _Run(NamedTuple):
    """A request in one decision."""

    time: int
    tokens: int
    computed: int
    cached: int
    remote: int
    prompt: int
    lost: int
    """Rejected, surplus or unused of its tokens: they left nothing in the cache."""
    resumed: bool
    """The scheduler says that it came back with this one."""
    came: int
    """When its outcome was taken in, UNKNOWN where that was not recorded."""


@dataclass(slots=True)
class _Account:
    runs: list[_Run] = field(default_factory=list[_Run])
    terms: Counter[str] = field(default_factory=Counter[str])
    done: str = ""
    known: bool = True
    """The outcome of each of its decisions was recorded."""


def balance(recording: Recording, registry: Registry, problems: Counter[str]) -> Balance:
    """How many requests were checked, and of how many the sum holds. Problems: ``identity_broken``."""
    if not recording.outcomes:
        return Balance()
    accounts = _accounts(recording, registry)
    prompts = any(decision.prompt for decision in recording.decisions)
    holds, unchecked, total = 0, Counter[str](), Counter[str]()
    for entry in registry.entries:
        account = accounts.get(id(entry))
        if account is None:
            continue
        why = _uncheckable(entry, account, prompts)
        if why:
            unchecked[why] += 1
            continue
        returns = _returns(entry, account.runs)
        terms = _terms(entry, account, returns)
        whole = _adds_up(terms) and all(run.resumed for _, run in returns)
        holds += whole
        problems["identity_broken"] += not whole
        total.update(terms)
    checked = holds + problems["identity_broken"]
    return Balance(checked, holds, {name: total[name] for name in TERMS if checked}, dict(unchecked))


def _adds_up(terms: Mapping[str, int]) -> bool:
    needed = terms["prompt"] - terms["cached"] - terms["remote"] + terms["recomputed"] + terms["output"] - 1
    return terms["scheduled"] == needed + terms["rejected"] + terms["surplus"] + terms["unused"]


def _accounts(recording: Recording, registry: Registry) -> dict[int, _Account]:
    """By the id of the registry's entry."""
    outcomes = {(place(one.process), one.number): one for one in recording.outcomes if one.number is not None}
    accounts: defaultdict[int, _Account] = defaultdict(_Account)
    for decision in sorted(recording.decisions, key=lambda decision: decision.start):
        came = outcomes.get((place(decision.process), decision.number)) if decision.number is not None else None
        for name in decision.tokens:
            account = accounts[id(registry.at(name, decision.start))]
            account.runs.append(_run(name, decision, came))
            account.known &= came is not None
    for came in recording.outcomes:
        _take_in(accounts, registry, came)
    return accounts


def _run(name: str, decision: Decision, came: Outcome | None) -> _Run:
    tables = () if came is None else (came.rejected, came.surplus, came.unused)
    columns = (decision.tokens, decision.computed, decision.cached, decision.remote, decision.prompt)
    tokens, computed, cached, remote, prompt = (column.get(name, -1) for column in columns)
    lost = sum(one.get(name, 0) for one in tables)
    taken = UNKNOWN if came is None else came.start
    resumed = name in decision.resumed
    return _Run(decision.start, tokens, computed, cached, max(remote, 0), prompt, lost, resumed, taken)


def _take_in(accounts: Mapping[int, _Account], registry: Registry, came: Outcome) -> None:
    """Whether or not the decision was recorded: what came out of a lost one must not vanish with it."""
    for term in FROM_OUTCOMES:
        column: Mapping[str, int] = getattr(came, "got" if term == "output" else term)
        for name, tokens in column.items():
            if account := accounts.get(id(registry.at(name, came.start))):
                account.terms[term] += tokens
    for name, reason in came.done.items():
        if account := accounts.get(id(registry.at(name, came.start))):
            account.done = reason


def _uncheckable(entry: Entry, account: _Account, prompts: bool) -> str:
    """Why the sum cannot be asked for: ``start_not_recorded``, ``not_ended``, ``no_output``, ``terms_missing``; else empty.

    ``prompts``: decisions tell the prompt of those that they choose for the first time.
    """
    first = account.runs[0]
    if min(run.tokens for run in account.runs) < 0:
        return "terms_missing"
    if first.computed < 0 or _prompt(entry, first) < 0 or (prompts and first.prompt < 0):
        return "start_not_recorded"
    stopped = any(fact.kind in ENDED for fact in entry.facts)
    if not account.done and not stopped:
        return "not_ended"
    if not account.terms["output"]:
        return "no_output"
    return "" if account.known else "terms_missing"


def _prompt(entry: Entry, first: _Run) -> int:
    if first.prompt >= 0:
        return first.prompt
    return next((fact.value for fact in entry.facts if fact.kind == "prompt_tokens" and fact.value is not None), -1)


def _terms(entry: Entry, account: _Account, returns: Sequence[tuple[int, _Run]]) -> Counter[str]:
    first = account.runs[0]
    terms = Counter(account.terms)
    terms["scheduled"] = sum(run.tokens for run in account.runs)
    terms["prompt"] = _prompt(entry, first)
    terms["remote"] = first.remote
    terms["cached"] = first.cached if first.cached >= 0 else first.computed - first.remote
    for computed, run in returns:
        terms["recomputed"] += max(0, computed - run.computed)
        terms["cached"] += max(0, run.computed - computed)
    return terms


def _returns(entry: Entry, runs: Sequence[_Run]) -> list[tuple[int, _Run]]:
    """For each eviction, the tokens that had been computed by then, and the run with which the request came back.

    The eviction says how many had been scheduled; those that were still running then, and came to nothing, are not among them.
    """
    found: list[tuple[int, _Run]] = []
    evictions = sorted(
        (fact.time, fact.value) for fact in entry.facts if fact.kind == "preempted" and fact.value is not None
    )
    for time, computed in evictions:
        after = next((k for k, run in enumerate(runs) if run.time >= time), None)
        if after is not None and after > 0:
            running = sum(run.lost for run in runs[:after] if run.came > time)
            found.append((computed - running, runs[after]))
    return found
