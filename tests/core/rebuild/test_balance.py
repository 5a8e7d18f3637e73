"""What was scheduled for a request adds up, whatever happened to it; and does not where a record is lost or wrong."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from teller_core.data.capture import Balance
from teller_core.data.records import Decision, Outcome, Process, Recording, RequestFact
from teller_core.rebuild.balance import balance
from teller_core.rebuild.requests import join_requests

ENGINE = Process("h", 7, "engine")


@dataclass
class Engine:
    """One that serves requests one after another, noting as an engine does: what it chose, what came out, whom it evicted.

    It keeps no terms of the identity, only the cache's length and the answer's.
    """

    chance: random.Random
    decisions: list[Decision] = field(default_factory=list[Decision])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    facts: list[RequestFact] = field(default_factory=list[RequestFact])
    time: int = 0

    def serve(self, name: str, prompt: int, cap: int, guesses: int) -> None:
        """One request from its coming to its end."""
        chance, answer, cache = self.chance, 0, chance_cached(self.chance, prompt)
        first: dict[str, Any] = {"prompt": {name: prompt}, "cached": {name: cache}}
        while answer < cap:
            need = prompt + answer - cache
            tokens = min(need, chance.randint(1, 40))
            guessed = chance.randint(0, guesses) if answer and tokens == need == 1 else 0
            number = self._choose(name, tokens + guessed, cache, guessed, **first)
            first = {}
            if chance.random() < 0.1 and answer:
                cache = self._evict(name, cache + tokens + guessed, prompt + answer, number)
                first = {"resumed": (name,)}
                continue
            cache += tokens
            if cache < prompt + answer:
                self._take(number, name, 0)
                continue
            confirmed = chance.randint(0, guessed)
            got = min(1 + confirmed, cap - answer)
            self._take(number, name, got, guessed - confirmed, 1 + confirmed - got, done=answer + got >= cap)
            answer += got
            cache += confirmed
        if chance.random() < 0.3:  # one step further had been chosen
            number = self._choose(name, 1, cache, 0)
            self._take(number, name, 0, unused=1)

    def _choose(self, name: str, tokens: int, cache: int, guessed: int, **first: Any) -> int:
        self.time += 10
        number = len(self.decisions)
        drafted = {name: guessed} if guessed else {}
        computed = {name: cache}
        decision = Decision(ENGINE, self.time, 1, {name: tokens}, computed=computed, number=number, drafted=drafted)
        self.decisions.append(decision._replace(**first))
        return number

    def _take(self, number: int, name: str, got: int, *lost: int, unused: int = 0, done: bool = False) -> None:
        self.time += 10
        rejected, surplus = lost or (0, 0)
        kept = ({name: n} if n else {} for n in (got, rejected, surplus, unused))
        self.outcomes.append(Outcome(ENGINE, self.time, 1, number, *kept, done={name: "length"} if done else {}))

    def _evict(self, name: str, cache: int, known: int, number: int) -> int:
        """Evicted while the step ran, whose outcome is thrown away. Some of what is known may be found in the cache again."""
        self.time += 1
        self.facts.append(RequestFact(ENGINE, self.time, 0, name, "preempted", cache))
        self._take(number, name, 0, unused=self.decisions[number].tokens[name])
        return self.chance.randint(0, known - 1)


def chance_cached(chance: random.Random, prompt: int) -> int:
    return chance.choice((0, 0, chance.randint(0, prompt - 1)))


def ran(seed: int) -> Recording:
    chance = random.Random(seed)
    engine = Engine(chance)
    for i in range(chance.randint(1, 6)):
        engine.serve(f"r{i}", chance.randint(1, 90), chance.randint(1, 20), chance.choice((0, 3)))
    return Recording(decisions=engine.decisions, outcomes=engine.outcomes, requests=engine.facts)


def asked(recording: Recording) -> tuple[Balance, Counter[str]]:
    problems: Counter[str] = Counter()
    return balance(recording, join_requests(recording, Counter()), problems), problems


@settings(max_examples=200)
@given(seed=st.integers(0, 10**9))
def test_it_holds_for_every_request_of_an_engine_that_loses_nothing(seed: int) -> None:
    recording = ran(seed)
    found, problems = asked(recording)
    assert found.checked == found.holds == len({name for one in recording.decisions for name in one.tokens})
    assert not problems["identity_broken"]
    assert found.terms["output"] == sum(sum(one.got.values()) for one in recording.outcomes)
    assert not found.unchecked


@settings(max_examples=200)
@given(seed=st.integers(0, 10**9), where=st.floats(0, 0.999))
def test_a_lost_decision_breaks_it_or_leaves_it_unchecked(seed: int, where: float) -> None:
    recording = ran(seed)
    lost = recording.decisions[int(where * len(recording.decisions))]
    (name,) = lost.tokens
    assume(sum(name in one.tokens for one in recording.decisions) > 1)
    found, _ = asked(replace(recording, decisions=[one for one in recording.decisions if one is not lost]))
    assert found.holds < len({name for one in recording.decisions for name in one.tokens})


@settings(max_examples=200)
@given(seed=st.integers(0, 10**9), where=st.floats(0, 0.999))
def test_a_token_too_many_breaks_it(seed: int, where: float) -> None:
    recording = ran(seed)
    at = int(where * len(recording.outcomes))
    wrong = recording.outcomes[at]
    (name,) = recording.decisions[wrong.number or 0].tokens
    outcomes = [*recording.outcomes]
    outcomes[at] = wrong._replace(got={name: wrong.got.get(name, 0) + 1})
    found, problems = asked(replace(recording, outcomes=outcomes))
    assert problems["identity_broken"] == found.checked - found.holds == 1


def test_a_request_whose_outcome_was_lost_is_not_checked() -> None:
    recording = ran(5)
    found, _ = asked(replace(recording, outcomes=recording.outcomes[1:]))
    assert sum(found.unchecked.values()) == 1


def test_without_outcomes_nothing_is_claimed() -> None:
    assert asked(replace(ran(5), outcomes=[])) == (Balance(), Counter())
