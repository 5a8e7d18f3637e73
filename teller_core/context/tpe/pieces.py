"""The loops of structural Trace Pair Encoding, compiled: a forest of live tokens in which pairs are found and merged.

A token covers consecutive rows of the tree in pre-order. What was not merged into it hangs below it: its *remaining* children.
It is *whole* when none remains. Three pairs may merge, and each result covers consecutive rows again:

- ABSORB: a token and its first remaining child, which is whole;
- EXTEND: a token and its only remaining child, which is not whole: what remains of the child remains of both;
- JOIN: two neighbouring siblings, both whole.

Neighbouring whole siblings of one symbol are a *run*: one token that counts them, made as soon as they stand side by side. A
label is twice the symbol, plus one for a run. What is light (see :mod:`light`) is one token from the beginning.

NONE is asked for as what is below 0: then the compiler leaves out what Python does with a negative index, a fifth of the time.
"""

from teller_core.context.tpe import forest as forests
from teller_core.context.tpe.forest import (
    ABOVE,
    ABSORB,
    AFTER,
    BEFORE,
    EXTEND,
    FIRST,
    FREE,
    FULL,
    HEAD,
    HIGH,
    JOIN,
    LABEL,
    MOST_LABELS,
    NONE,
    RUNS,
    TAIL,
    USED,
    Forest,
    key_of,
    know,
    most_frequent,
    number_of,
    raise_times,
)
from teller_core.data.compiled import compiled, forget_stale, inlined
from teller_core.data.table import Int32, Int64

NOT_NEGATIVE = 0x7FFFFFFF
"""A slot is none: a mask tells the compiler."""


@inlined
def _whole(forest: Forest, token: int) -> bool:
    return forest.node[token, FIRST] < 0 and forest.opened[token] == 0


@inlined
def _pair_below(forest: Forest, token: int) -> int:
    """The key of the pair that ``token`` makes with its first remaining child, or NONE."""
    node = forest.node
    child = node[token, FIRST]
    if child < 0 or forest.opened[token] or forest.opened[child]:
        return NONE
    if node[child, FIRST] < 0:
        return key_of(ABSORB, node[token, LABEL], node[child, LABEL])
    return key_of(EXTEND, node[token, LABEL], node[child, LABEL]) if node[child, AFTER] < 0 else NONE


@inlined
def _pair_after(forest: Forest, token: int) -> int:
    """The key of the pair that ``token`` makes with its next sibling, or NONE."""
    following = forest.node[token, AFTER]
    if following < 0 or not _whole(forest, token) or not _whole(forest, following):
        return NONE
    return key_of(JOIN, forest.node[token, LABEL], forest.node[following, LABEL])


@inlined
def _hold(forest: Forest, slot: int, key: int) -> None:
    """Let ``slot`` hold the pair of ``key``, NONE for none. Where nothing is learned, a pair without a number is none."""
    learning = len(forest.shown) > 0
    number = NONE
    if key >= 0:
        number = know(forest, key) if learning else number_of(forest, key)
    before = forest.slot[slot]
    if before == number:
        return
    forest.slot[slot] = number
    if learning and before >= 0:
        forest.times[before] -= forest.weight[slot >> 1]
    if number < 0:
        return
    if learning:
        forest.times[number] += forest.weight[slot >> 1]
        raise_times(forest, number)
    mark, place = forest.mark, forest.place
    at = mark[FREE]
    if at < 0:
        at = mark[USED]
        mark[USED] += 1
    else:
        mark[FREE] = place[at, 1]
    place[at, 0] = slot
    place[at, 1] = forest.first[number]
    forest.first[number] = at


@inlined
def _look(forest: Forest, token: int) -> None:
    """Look for pairs below and after ``token`` again."""
    _hold(forest, 2 * token, _pair_below(forest, token))
    _hold(forest, 2 * token + 1, _pair_after(forest, token))


@compiled
def look_everywhere(forest: Forest) -> None:
    """Make runs of what stands side by side, then look for pairs at every live token."""
    rows = forest.node.shape[0]
    for token in range(rows):
        if forest.node[token, HIGH] >= 0:
            _run(forest, token)
    for token in range(rows - 1, -1, -1):
        if forest.node[token, HIGH] >= 0:
            _look(forest, token)


@inlined
def _append(forest: Forest, token: int, other: int) -> None:
    """Put the run lengths of ``other`` behind those of ``token``."""
    node = forest.node
    if node[other, HEAD] < 0:
        return
    if node[token, HEAD] < 0:
        node[token, HEAD] = node[other, HEAD]
    else:
        forest.link[node[token, TAIL]] = node[other, HEAD]
    node[token, TAIL] = node[other, TAIL]


@inlined
def _take_in(forest: Forest, token: int, other: int) -> None:
    """``other``, which begins where ``token`` ends, is part of it from now on."""
    node = forest.node
    _append(forest, token, other)
    node[token, HIGH] = node[other, HIGH]
    node[other, HIGH] = NONE
    _hold(forest, 2 * other, NONE)
    _hold(forest, 2 * other + 1, NONE)


@inlined
def _take_in_next(forest: Forest, token: int) -> None:
    """Take in the next sibling."""
    node = forest.node
    other = node[token, AFTER]
    node[token, AFTER] = node[other, AFTER]
    if node[other, AFTER] >= 0:
        node[node[other, AFTER], BEFORE] = token
    _take_in(forest, token, other)


@inlined
def _begin_run(forest: Forest, token: int, place: int) -> None:
    """Make ``token`` a run of one, whose length comes before all others of it. ``place``: a row that is about to be no token."""
    node = forest.node
    node[token, LABEL] |= 1
    forest.told[place] = 1
    forest.link[place] = node[token, HEAD]
    if node[token, HEAD] < 0:
        node[token, TAIL] = place
    node[token, HEAD] = place


@inlined
def _count_in(forest: Forest, token: int) -> bool:
    """Make a run of ``token`` and its next sibling, where the two are whole and alike; whether that was so."""
    node, told = forest.node, forest.told
    other = node[token, AFTER]
    if other < 0 or not forest.mark[RUNS] or node[other, LABEL] >> 1 != node[token, LABEL] >> 1:
        return False
    if not _whole(forest, token) or not _whole(forest, other):
        return False
    if node[token, LABEL] & 1 == 0:
        _begin_run(forest, token, other)
    if node[other, LABEL] & 1:
        head = node[other, HEAD]
        told[node[token, HEAD]] += told[head]
        node[other, HEAD] = forest.link[head]
    else:
        told[node[token, HEAD]] += 1
    _take_in_next(forest, token)
    return True


@inlined
def _run(forest: Forest, token: int) -> int:
    """Make one run of ``token`` and its like on both sides; returns the token that stands for them."""
    while _count_in(forest, token):
        pass
    before = forest.node[token, BEFORE]
    return before if before >= 0 and _count_in(forest, before) else token


@inlined
def _merge(forest: Forest, slot: int, symbol: int) -> None:
    """Merge the pair that ``slot`` holds into one token of ``symbol``."""
    node = forest.node
    token = slot >> 1
    if slot & 1:
        _take_in_next(forest, token)
    else:
        other = node[token, FIRST]
        below = node[other, FIRST] if node[other, FIRST] >= 0 else node[other, AFTER]
        node[token, FIRST] = below
        if below >= 0:
            node[below, ABOVE] = token
            node[below, BEFORE] = NONE
        _take_in(forest, token, other)
    node[token, LABEL] = 2 * symbol
    token = _run(forest, token)
    _look(forest, token)
    before, above = node[token, BEFORE], node[token, ABOVE]
    if before >= 0:
        _hold(forest, 2 * before + 1, _pair_after(forest, before))
    elif above >= 0:
        _hold(forest, 2 * above, _pair_below(forest, above))


@compiled
def _sort(slots: Int32, size: int) -> None:
    """Sort ``slots[:size]``: a heap sort, which needs no room."""
    for low in range(size // 2 - 1, -1, -1):
        _sift(slots, low, size)
    for last in range(size - 1, 0, -1):
        slots[0], slots[last] = slots[last], slots[0]
        _sift(slots, 0, last)


@compiled
def _sift(slots: Int32, at: int, size: int) -> None:
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and slots[child + 1] > slots[child]:
            child += 1
        if slots[at] >= slots[child]:
            break
        slots[at], slots[child] = slots[child], slots[at]
        at = child


@compiled
def merge_all(forest: Forest, number: int, symbol: int, spare: Int32) -> None:
    """Merge every occurrence of the pair ``number`` into tokens of ``symbol``. ``spare`` int32 [2 rows] has no content.

    Only where a label meets itself do occurrences share a token: there the upper, or the left, one comes first.
    """
    at, size = forest.first[number], 0
    forest.first[number] = NONE
    while at >= 0:
        if forest.slot[forest.place[at, 0]] == number:
            spare[size] = forest.place[at, 0]
            size += 1
        following = forest.place[at, 1]
        forest.place[at, 1] = forest.mark[FREE]
        forest.mark[FREE] = at
        at = following
    key = forest.known[number]
    if (key >> 30) & (MOST_LABELS - 1) == key & (MOST_LABELS - 1):
        _sort(spare, size)
    for i in range(size):
        slot = spare[i] & NOT_NEGATIVE
        if forest.slot[slot] == number:
            _merge(forest, slot, symbol)


@compiled
def merge_by_rank(forest: Forest, merges: int, base: int, spare: Int32) -> None:
    """Apply merges 0 to ``merges`` in their order: the pair with number k becomes symbol ``base + k``."""
    for number in range(merges):
        if forest.first[number] >= 0:
            merge_all(forest, number, base + number, spare)


@compiled
def learn(forest: Forest, base: int, least: int, spare: Int32, made: Int64) -> int:
    """Merge the most frequent pair into symbol ``base``, then the most frequent of what is left into the next, and so on, until
    ``made`` is full of their keys or none occurs ``least`` times. Returns how many, or NONE where there were pairs too many.
    """
    for i in range(len(made)):
        number = most_frequent(forest)
        if forest.mark[FULL]:
            return NONE
        if number < 0 or forest.times[number] < least:
            return i
        merge_all(forest, number, base + i, spare)
        made[i] = forest.known[number]
    return len(made)


forget_stale(merge_all, __file__, forests.__file__)
