"""Rules for causes between ranks.

A collective's shortest time over its ranks is its transfer; what other ranks took longer, they waited.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import names_of
from teller_core.data.plain_names import NAME_LENGTH
from teller_core.data.report import EvidenceItem
from teller_core.data.table import UNKNOWN, Float64, Int64, Mask
from teller_core.judge.around import AROUND_NS
from teller_core.judge.awaited import awaited
from teller_core.judge.evidence import COUNTED, Clue, cost, count, line_item, ms
from teller_core.judge.intervals import Spans, overlaps, union
from teller_core.judge.prepare import CALM, EAGER, EMPTY_ROWS, Case
from teller_core.judge.scene import Scene
from teller_core.judge.step_threads import step_threads, waits
from teller_core.judge.windows import keyed

SLOWER = 3.0
"""A link is degraded where messages take at least this many times what they take in the capture's calm steps,"""
SURPRISE = 3.0
"""and this many robust standard deviations more, in log time: on a busy host healthy collectives vary widely, too. Deviations of
the quicker half: a link that is slow for a while is no part of what is usual.
"""
LASTING = 1.2
"""Or where the steps around took so many times the usual time in collectives, all together: chance evens out in many."""
QUARTER = 0.6745
"""Standard deviations from the middle of a normal distribution to its quarters."""
BEYOND = {
    "calm": "collectives beyond their calm time in its steps",
    "some calm": "collectives beyond their calm or median time in its steps",
    "median": "collectives beyond their median time in its steps",
}
"""What the cost of slow collectives is called, by what is usual for those steps of which it was taken."""
ALIKE = 0.5
"""All ranks are slow alike where the shortest time of a collective is at least this share of the longest."""
WAITED = 0.5
"""A rank is a straggler where others spend at least this share of their collectives waiting for it."""
LEAST_RANKS = 2
SAME_RANK = 0.7
"""Share of all this waiting that must be for it: a rank that begins a step late is awaited in the first collective of the step,
for long, and in the others each waits for the other, shortly."""


@dataclass(frozen=True)
class Link:
    """One row a step with collectives, by step: ``transfer`` int64 ns (each collective's shortest time over the ranks that
    were seen, summed), ``longest`` int64 ns, ``count`` int64, ``ranks`` the fewest ranks that met in any of them.
    """

    step: Int64
    transfer: Int64
    longest: Int64
    count: Int64
    ranks: Int64
    calm: float
    """ns: a calm step's transfer a collective."""


def link(case: Case) -> Link:
    """The collectives of every step, measured once a capture."""
    return case.once("link", _link)


def degraded_link(scene: Scene) -> Clue | None:
    """Collectives took longer than their calm time, or for a while longer than usual, on all ranks alike, the last one to arrive
    included.
    """
    seen, alike = link(scene.case), scene.case.once("slow alike", _slow_alike)
    if alike is None:
        return None
    own = _own(scene, seen)
    mine = own[alike.mask[own]]
    unseen = _unseen(scene, seen, alike)
    ns = int(alike.added[mine].sum()) + unseen
    worst = int(mine[np.argmax(seen.transfer[mine])]) if len(mine) else alike.worst
    scope = "this_request" if len(mine) else "similar_steps"
    each = float(seen.transfer[worst] / seen.count[worst])
    evidence = [
        cost(_beyond(alike.calm[alike.mask] if unseen else alike.calm[mine]), ns, kind="collective", scope=scope),
        cost(
            "one collective, on the rank that took least",
            int(each),
            int(alike.usual[worst]),
            kind="collective",
            scope=scope,
        ),
        count("collectives in the step", int(seen.count[worst]), unit="collectives", kind="collective", scope=scope),
        count("ranks that were slow alike", int(seen.ranks[worst]), unit="ranks", kind="collective", scope=scope),
    ]
    return Clue(
        "comm.degraded_link",
        ns,
        COUNTED,
        evidence,
        step=int(seen.step[worst]),
        view="horizontal",
        layer="communication",
    )


def _beyond(calm: Mask) -> str:
    """What a cost is called, by which of the steps that tell of it were held against the calm time; the others, the median."""
    return BEYOND["calm" if calm.all() else "some calm" if calm.any() else "median"]


def straggler_rank(scene: Scene) -> Clue | None:
    """The ranks of its steps waited in their collectives, most of it for the same one; or one alone was kept from running."""
    found = [clue for clue in (_waited_for(scene), _held_alone(scene)) if clue is not None]
    return max(found, key=lambda clue: clue.ns, default=None)


def kept(case: Case) -> dict[int, tuple[Int64, Int64]]:
    """By the position of each rank whose process was sampled: int64 ns a step, for how long its thread waited for a processor
    beyond its calm level, and for how long all of its process stood still. Empty where one process runs all steps.
    """
    return case.once("kept ranks", _kept_ranks)


def _kept_ranks(case: Case) -> dict[int, tuple[Int64, Int64]]:
    threads = {thread.process: thread for thread in step_threads(case).run}
    found: dict[int, tuple[Int64, Int64]] = {}
    low, high, names = case.begin, np.maximum(case.begin, case.stop), names_of(case.capture.ranks)
    for at, rank in enumerate(case.capture.ranks):
        # Several traces of one process are several ranks of the capture: the first stands for it, else it were its own company.
        name = next((name for name in names[at] if name in threads), "")
        thread = threads.pop(name, None) if rank.role == "worker" else None
        if thread is not None:
            waited = np.rint(waits(thread, low, high)).astype(np.int64)
            found[at] = np.minimum(waited, high - low), overlaps(_late(case, thread.process), low, high)
    return found if len(found) >= LEAST_RANKS else {}


def _held_alone(scene: Scene) -> Clue | None:
    """Of several processes that run its steps one waited for a processor, or stood still, and the others hardly did."""
    held = scene.holds
    if not len(held.step):
        return None
    lost: dict[int, int] = {}
    for rank, (waited, still) in kept(scene.case).items():
        mine = np.minimum(held.over, waited[held.step])
        lost[rank] = int(np.where(still[held.step] > 0, np.maximum(held.rest, mine), mine)[~held.gap].sum())
    if not lost:
        return None
    alone = max(lost, key=lambda rank: lost[rank])
    ns, others = lost[alone], sum(lost.values()) - lost[alone]
    if ns <= 0 or ns < SAME_RANK * (ns + others):
        return None
    evidence = [
        cost("its process waited for a processor, or stood still, while steps took longer", ns, kind="sample",
             scope="its_steps"),
        cost("all other ranks together did", others, kind="sample", scope="its_steps"),
    ]  # fmt: skip
    return Clue("comm.straggler_rank", ns, COUNTED, evidence, rank=alone, view="horizontal", layer="communication")


def _late(case: Case, process: str) -> Spans:
    """When all of a process stood still."""
    pauses = case.capture.pauses
    mine = [kind == "thread_lag" and who == process for kind, who in zip(pauses.kind, pauses.process, strict=True)]
    rows = np.flatnonzero(np.array(mine, np.bool_))
    return union(pauses.start[rows], pauses.start[rows] + pauses.dur[rows])


def _waited_for(scene: Scene) -> Clue | None:
    table, met = scene.case.capture.collectives, awaited(scene.case)
    rows = scene.case.once("collectives", lambda case: keyed(case.capture.collectives.step.astype(np.int64)))
    mine = rows.of(scene.life.step.astype(np.int64))
    mine = mine[(met.wait[mine] != UNKNOWN) & (met.late[mine] >= 0) & (met.rank[mine] != met.late[mine])]
    if not len(mine):
        return None
    total = np.zeros(int(met.late[mine].max()) + 1, np.int64)
    np.add.at(total, met.late[mine], met.wait[mine])
    late = int(np.argmax(total))
    waiting = mine[met.late[mine] == late]
    waited, whole = int(total[late]), int(table.dur[waiting].sum())
    ranks = max(len(np.unique(met.rank[waiting])), 1)
    usual = int(EAGER * scene.case.once("usual wait", _usual_wait) * len(np.unique(table.step[waiting])))
    ns = waited // ranks - usual
    if waited < SAME_RANK * total.sum() or waited < WAITED * whole or ns <= 0:
        return None
    evidence = [
        cost("each other rank waited for it, beyond what ranks usually wait for one another", ns, kind="collective"),
        cost("each other rank waited for it", waited // ranks, kind="collective"),
        cost("collectives in which they waited", whole, kind="collective"),
        count("of all their waiting", 100 * waited / float(total.sum()), unit="%", kind="collective"),
        *_kept(scene, table.sequence[waiting]),
    ]
    return Clue("comm.straggler_rank", ns, COUNTED, evidence, rank=late, view="horizontal", layer="communication")


def _usual_wait(case: Case) -> float:
    """ns: what a rank waits for others in a step, as a rule."""
    table, met = case.capture.collectives, awaited(case)
    rows = np.flatnonzero((met.wait != UNKNOWN) & (table.step >= 0) & (met.rank != met.late))
    steps = len(np.unique(table.step[table.step >= 0]))
    if not len(rows):
        return 0.0
    pair, place = np.unique(np.stack([table.step[rows], met.rank[rows]]), axis=1, return_inverse=True)
    waited = np.bincount(place.reshape(-1), weights=met.wait[rows], minlength=pair.shape[1])
    a_step = np.zeros(steps)
    _, of = np.unique(pair[0], return_inverse=True)
    most = np.zeros(int(of.max()) + 1)
    np.maximum.at(most, of, waited)
    a_step[: len(most)] = most  # in the others nobody waited
    return float(np.median(a_step))


def _kept(scene: Scene, met: Int64) -> list[EvidenceItem]:
    """What the late rank did before the meeting for which it was awaited longest, where a trace shows it: a wait is no cause."""
    meetings, ranks = scene.case.capture.meetings, scene.case.capture.ranks
    met = np.unique(met[met < len(meetings.kept)])
    met = met[(meetings.kept[met] >= 0) & (meetings.by[met] != UNKNOWN) & (meetings.late[met] >= 0)]
    if not len(met):
        return []
    worst = int(met[np.argmax(meetings.by[met])])
    late, row = int(meetings.late[worst]), int(meetings.kept[worst])
    tree = ranks[late].tree
    if tree is None:
        return []
    name = tree.trace.names[int(tree.trace.name[row])]
    return [
        EvidenceItem(
            kind="span",
            scope="this_request",
            span=f"{late}:{row}",
            name=name[:NAME_LENGTH],
            value=ms(int(meetings.by[worst])),
            unit="ms",
        )
    ]


def fabric_fallback(scene: Scene) -> Clue | None:
    """The log says that ranks talk over sockets, or without the engine's own kernel, and collectives take much of its steps."""
    rows = scene.case.once("sockets", _sockets)
    seen = link(scene.case)
    mine = _own(scene, seen)
    if not rows or not len(mine):
        return None
    ns = int(seen.transfer[mine].sum())
    evidence = [cost("collectives in its steps", ns, kind="collective")]
    evidence += [line_item(scene, row, "the transport that was chosen at start") for row in rows[:2]]
    return Clue("comm.fabric_fallback", ns, COUNTED, evidence, view="horizontal", layer="communication")


def _link(case: Case) -> Link:
    """Collectives are told apart by (group, sequence); where that is unknown, by their order in the step."""
    table = case.capture.collectives
    stalled = overlaps(case.stalls, table.start, table.start + table.dur) > 0  # a rank stood still for the recorder
    use = np.flatnonzero((table.step >= 0) & ~stalled)
    empty = np.empty(0, np.int64)
    if not len(use):
        return Link(empty, empty, empty, empty, empty, float("nan"))
    key = np.stack([table.step[use].astype(np.int64), table.group[use].astype(np.int64), table.sequence[use]])
    met, index = np.unique(key, axis=1, return_inverse=True)
    index = index.reshape(-1)
    count = met.shape[1]
    shortest, longest = np.full(count, 2**62), np.zeros(count, np.int64)
    np.minimum.at(shortest, index, table.dur[use])
    np.maximum.at(longest, index, table.dur[use])
    ranks = np.bincount(index, minlength=count)
    step, inverse = np.unique(met[0], return_inverse=True)
    transfer, top = np.zeros(len(step), np.int64), np.zeros(len(step), np.int64)
    fewest = np.full(len(step), 2**31)
    np.add.at(transfer, inverse, shortest)
    np.add.at(top, inverse, longest)
    np.minimum.at(fewest, inverse, ranks)
    per_step = np.bincount(inverse, minlength=len(step))
    return Link(step, transfer, top, per_step, fewest, float(np.quantile(transfer / per_step, CALM)))


def _slow(case: Case, seen: Link) -> tuple[Mask, Mask]:
    """bool a row each: its step was slow in collectives, alone; and with those around it."""
    if not len(seen.step):
        return np.zeros(0, np.bool_), np.zeros(0, np.bool_)
    each = np.log(np.maximum(seen.transfer / seen.count, 1.0))
    low, middle = np.quantile(each, (0.25, 0.5))
    spread = float(middle - low) / QUARTER
    alone = each >= np.log(max(seen.calm, 1.0)) + max(np.log(SLOWER), SURPRISE * spread)
    # One step among many counts for no more than what is slow alone; and who computes prompts has more to send.
    beyond = np.minimum(each - middle, np.log(SLOWER))
    decodes = case.capture.steps.context_tokens[seen.step] == 0
    return alone, _around(case, seen.step, beyond, decodes) >= np.log(LASTING)


def _around(case: Case, step: Int64, value: Float64, some: Mask) -> Float64:
    """float64 a row: the mean of a value over ``some`` steps of the same engine around each, 0 where there are none and where
    nobody knows when the step began.
    """
    engine, begin = case.capture.steps.engine[step], case.begin[step]
    out = np.zeros(len(step))
    for number in np.unique(engine).tolist():
        mine = np.flatnonzero((engine == number) & (begin != UNKNOWN))
        mine = mine[np.argsort(begin[mine], kind="stable")]
        time, total, many = begin[mine], *(np.append(0.0, np.cumsum(each[mine])) for each in (value * some, some))
        low, high = np.searchsorted(time, time - AROUND_NS), np.searchsorted(time, time + AROUND_NS, "right")
        out[mine] = (total[high] - total[low]) / np.maximum(many[high] - many[low], 1.0)
    return out


class _Alike(NamedTuple):
    """Steps of a Link that were slow on all ranks alike: ``mask`` bool and ``added`` int64 ns beyond what is ``usual``, a row of
    the link each. That is float64 ns a collective: the calm time for a step that is slow alone, ``calm`` bool; for one that is
    slow with those around it, the median. ``worst``: the row with the longest; ``took``, ``adds`` ns: what such a step takes and
    what it adds, medians.
    """

    mask: Mask
    added: Int64
    usual: Float64
    calm: Mask
    worst: int
    took: int
    adds: int


def _slow_alike(case: Case) -> _Alike | None:
    seen = link(case)
    alone, lasting = _slow(case, seen)
    mask = (alone | lasting) & (seen.ranks > 1) & (seen.transfer >= ALIKE * seen.longest)
    if not mask.any():
        return None
    usual = np.where(alone, seen.calm, float(np.median(seen.transfer / seen.count)))
    added = (seen.transfer - seen.count * usual).astype(np.int64)
    rows, took = np.flatnonzero(mask), case.took[seen.step[mask]]
    known = took[took != UNKNOWN]
    return _Alike(
        mask=mask,
        added=added,
        usual=usual,
        calm=alone,
        worst=int(rows[np.argmax(seen.transfer[rows])]),
        took=int(np.median(known)) if len(known) else UNKNOWN,
        adds=int(np.median(added[mask])),
    )


def _sockets(case: Case) -> list[int]:
    """Log lines in which NCCL says that it chose sockets, or the engine that it does not use its own all-reduce."""
    fields = case.capture.lines.fields
    sockets = [row for row in case.lines.get("nccl.net", EMPTY_ROWS).tolist() if '"Socket"' in fields[row]]
    return sockets + case.lines.get("vllm.custom_allreduce", EMPTY_ROWS).tolist()


def _own(scene: Scene, seen: Link) -> Int64:
    """int64: the rows of the link that are steps of the request."""
    step = np.unique(scene.life.step).astype(np.int64)
    at = np.searchsorted(seen.step, step)
    there = at < len(seen.step)
    at, step = at[there], step[there]
    return at[seen.step[at] == step].astype(np.int64)


def _unseen(scene: Scene, seen: Link, alike: _Alike) -> int:
    """ns for the request's steps that no profile overlaps: those as slow as the profiled slow ones are taken to be like them."""
    slow, adds = alike.took, alike.adds
    unseen = scene.life.step[~np.isin(scene.life.step, seen.step[_own(scene, seen)])]
    mine = scene.case.took[unseen]
    if slow == UNKNOWN or not len(mine):
        return 0
    begin, stop = scene.case.begin[unseen], scene.case.stop[unseen]
    inside = (begin >= scene.low) & (begin < scene.high) & (overlaps(scene.case.stalls, begin, stop) == 0)
    return int((inside & (2 * mine >= slow)).sum()) * adds
