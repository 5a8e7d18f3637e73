"""Which of all that may be said is good to say: what the language head is taught, and how an answer is decoded from scores.

A good answer says what, where, how much, how sure and what next, and cites the facts that stand out most. Ways of saying it
differ, so that what is learned is what to say and not one string.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from teller_core.data.table import Float32, Int32, Mask
from teller_core.model.words.automaton import Prefix, after, allowed, begin
from teller_core.model.words.grammar import END, grammar
from teller_core.model.words.lexicon import SIMILAR, clause
from teller_core.model.words.matter import FIRST, WHOLE, Matter

MOST_DETAILS = 2
"""Facts that are told beside the cost: more than people keep in mind."""
LEAST_WORTH = 0.35
"""A fact below this tells nothing that the others do not."""
DOUBLINGS = 4.0
"""A value that differs from the usual by so many doublings stands out as much as a fact can."""
WORTH = {
    "log_line": 0.7,
    "pause": 0.5,
    "decision": 0.5,
    "collective": 0.5,
    "span": 0.45,
    "step": 0.45,
    "count": 0.4,
    "sample": 0.4,
}
"""Of a fact without anything usual beside it: what somebody wrote down or decided before what was counted."""
NEAR = {"this_request": 0.2, "its_steps": 0.15, SIMILAR: -0.1, "capture": -0.1}
LEFT_OUT = frozenset({"over", "unlike", "beside", "mostly", "share", "saved"})
"""Rules whose words some answers go without: what they tell is good to know and not asked for."""
SECOND = "{against_2}"
"""A second look-alike is one too many, mostly."""
RARELY, OFTEN, NOISE = 0.15, 0.5, 0.08
"""How often one of them is left out, how often the plain alternative is taken, and by how much worths are blurred."""


def taught(matter: Matter, rng: np.random.Generator | None = None) -> Int32:
    """int32 actions, END last: a good answer. Without ``rng`` the plain one, always the same."""
    blur = np.zeros(len(matter.facts)) if rng is None else rng.normal(0.0, NOISE, len(matter.facts))
    worth = [_worth(matter, at) + float(blur[at]) for at in range(len(matter.facts))]
    prefix, said = begin(matter), list[int]()
    while not said or said[-1] != END:
        said.append(_choice(prefix, allowed(prefix), worth, rng))
        prefix = after(prefix, said[-1])
    return np.array(said, np.int32)


def decoded(matter: Matter, score: Callable[[Sequence[int]], Float32]) -> Int32:
    """int32 actions, END last: at each place the allowed action with the highest score. ``score``, given the actions so far,
    returns [size of the vocabulary + facts]; it is not asked where only one action is allowed.
    """
    prefix, said = begin(matter), list[int]()
    while not said or said[-1] != END:
        mask = allowed(prefix)
        free = np.flatnonzero(mask)
        said.append(int(free[0] if len(free) == 1 else np.argmax(np.where(mask, score(said), -np.inf))))
        prefix = after(prefix, said[-1])
    return np.array(said, np.int32)


def _choice(prefix: Prefix, mask: Mask, worth: Sequence[float], rng: np.random.Generator | None) -> int:
    rules = grammar()
    words = [int(action) for action in np.flatnonzero(mask[: len(rules.words)])]
    facts = [int(at) for at in np.flatnonzero(mask[len(rules.words) :])]
    telling = [word for word in words if any(map(str.isalpha, rules.words[word]))]
    if not _worthy(prefix, worth):
        telling = [word for word in telling if rules.rules[rules.places[word]] != "seen"] or telling
    if len(telling) < len(words) and (rng is None or rng.random() < OFTEN):
        telling = [word for word in telling if SECOND not in rules.words[word]]
    if telling:
        return _word(telling, len(telling) < len(words), rng)
    if facts:
        return len(rules.words) + max(facts, key=lambda at: worth[at])
    more = [word for word in words if rules.words[word] == "; "]
    if more and (len(words) == 1 or _worthy(prefix, worth)):
        return more[0]
    return next(word for word in words if word not in more)


def _word(telling: Sequence[int], others: bool, rng: np.random.Generator | None) -> int:
    """A word of the first rule that has one; the grammar's order is that of a good answer."""
    rules = grammar()
    place = min(rules.places[word] for word in telling)
    here = [word for word in telling if rules.places[word] == place]
    if rng is None:
        return here[0]
    later = [word for word in telling if word not in here]
    if later and not others and rules.rules[place] in LEFT_OUT and rng.random() < RARELY:
        return _word(later, others, rng)
    return here[0] if rng.random() < OFTEN else int(rng.choice(here))


def _worthy(prefix: Prefix, worth: Sequence[float]) -> bool:
    """Whether a fact of the cause is left that should be told."""
    kinds = prefix.matter.kinds
    own = [at for at, each in enumerate(kinds) if each - {"beside", FIRST, WHOLE}]
    told = len(prefix.used & set(own))
    return told < MOST_DETAILS and any(worth[at] >= LEAST_WORTH for at in own if at not in prefix.used)


def _worth(matter: Matter, at: int) -> float:
    """How much a fact tells: by how far it is from the usual, how directly it was seen and how near to the request; nothing
    where it is what the cause cost, which is told already.
    """
    item = matter.facts[at].item
    if clause(item) is None or WHOLE in matter.kinds[at]:
        return 0.0
    first = 0.3 if FIRST in matter.kinds[at] else 0.0
    near = NEAR.get(item.scope, 0.0)
    if item.value is not None and item.normal is not None:
        apart = abs(math.log2((item.value + 1e-3) / (item.normal + 1e-3)))
        return 0.3 + 0.7 * min(apart / DOUBLINGS, 1.0) + near + first
    nothing = 0.5 if item.value == 0 else 0.0
    return WORTH.get(item.kind, 0.4) + near + first - nothing
