"""From whom, or to whom, the data of a collective goes: what PyTorch says of it, in two places.

Arguments of ``record_param_comms`` and of NCCL's kernels have ``Rank``: of a broadcast, reduce, gather or scatter the root's
place in the group; of a send or recv ``Dst Rank`` or ``Src Rank`` is the other side's number in the job (since 2.5; saveNcclMeta
of torch/csrc/profiler/util.cpp, RECORD_PARAM_COMMS_DATA of ProcessGroupNCCL.cpp). Where inputs were recorded, operators as
``c10d::broadcast_`` have the place of the root or of the other side among them, also those of Gloo, which says nothing else
(torch/csrc/distributed/c10d/Ops.cpp).
"""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from teller_core.data.table import Int64
from teller_core.data.trace import Trace

MOST_RANKS = 1 << 20
"""Of a group: what claims more says nothing."""
GIVES, GETS = "gives", "gets"
SIDES = {"broadcast": GIVES, "scatter": GIVES, "reduce": GETS, "gather": GETS, "send": GETS, "recv": GIVES}
"""What the rank that is named does, by the first word of what was called."""
OPERATORS = {
    "c10d::broadcast_": 2, "c10d::reduce_": 3, "c10d::gather_": 3, "c10d::scatter_": 3, "c10d::send": 2, "c10d::recv_": 2,
}  # fmt: skip
"""Which of an operator's inputs is the place of the root, or of the other side."""
GLOO = {"gloo:broadcast", "gloo:reduce", "gloo:gather", "gloo:scatter"}


class Ends(NamedTuple):
    """Numbers of ranks in the job: who gives (``source``) and who gets (``target``) the data of a call; -1 for all others and
    where it is not said.
    """

    source: int = -1
    target: int = -1


UNSAID = Ends()


def ends_said(args: Mapping[str, object], word: str) -> Ends:
    """What the arguments of a call say, ``word`` being the producer's for its kind."""
    side = SIDES.get(word.strip("_").removesuffix("_oop"))
    if side is None:
        return UNSAID
    of_pair = {"send": "Dst Rank", "recv": "Src Rank"}.get(word)
    named = _whole(args.get(of_pair)) if of_pair else _member(_members(args), _whole(args.get("Rank")))
    return _ends(side, named)


def ends_of(word: str, root: int) -> Ends:
    """The ends of a rooted collective whose ``root`` is a number in the job, -1 where nobody says."""
    side = SIDES.get(word)
    return UNSAID if side is None else _ends(side, root)


def ends_called(name: str, args: str, members: Sequence[int]) -> Ends:
    """What the inputs of an operator say, whose group has these ``members``, in their order; empty where that is not known."""
    try:
        read = json.loads(args)
    except (ValueError, RecursionError):
        return UNSAID
    inputs = cast("dict[str, object]", read).get("Concrete Inputs") if isinstance(read, dict) else None
    listed, place = cast("list[object]", inputs) if isinstance(inputs, list) else [], OPERATORS[name]
    side = SIDES[name.removeprefix("c10d::").rstrip("_")]
    return _ends(side, _member(members, _whole(listed[place]) if place < len(listed) else -1))


def with_caller(ends: Ends, word: str, rank: int) -> Ends:
    """``ends`` with the rank that called as the other side, where ``word`` (or an operator's name) is that of a send or recv."""
    word = word.removeprefix("c10d::").rstrip("_")
    if word == "send" and ends.target >= 0:
        return ends._replace(source=rank)
    return ends._replace(target=rank) if word == "recv" and ends.source >= 0 else ends


def only_group(groups: Sequence[tuple[str, tuple[int, ...]]], rank: int | None) -> tuple[int, ...]:
    """The members of the groups of several ranks that a rank is in, where they are the same in all of them; else none."""
    found = {members for _, members in groups if rank in members and len(members) > 1}
    return found.pop() if len(found) == 1 else ()


def handed_over(trace: Trace, rows: Int64) -> dict[int, int]:
    """The operator that handed a collective over to a thread of Gloo, by the row of that thread, where the order tells: of a
    kind as many were called as ran, and each ran after it was called.
    """
    found: dict[int, int] = {}
    for name in GLOO & set(trace.names):
        operator = f"c10d::{name.removeprefix('gloo:')}_"
        if operator not in trace.names:
            continue
        ran = rows[trace.name[rows] == trace.names.index(name)]
        called = np.flatnonzero(trace.name == trace.names.index(operator))
        ran, called = (of[np.argsort(trace.start[of], kind="stable")] for of in (ran, called))
        if len(ran) == len(called) and (trace.start[called] <= trace.start[ran]).all():
            found |= dict(zip(ran.tolist(), called.tolist(), strict=True))
    return found


def _ends(side: str, named: int) -> Ends:
    return Ends(source=named) if side == GIVES else Ends(target=named)


def _members(args: Mapping[str, object]) -> Sequence[int]:
    """Numbers of the ranks of a group in its order: listed, unless the list is cut, or told by where they begin and how far apart
    they are.
    """
    size, begin, stride = (_whole(args.get(name)) for name in ("Group size", "Global rank start", "Global rank stride"))
    listed = args.get("Process Group Ranks")
    if isinstance(listed, str):
        try:
            listed = json.loads(listed)
        except (ValueError, RecursionError):
            listed = None
    several = [_whole(one) for one in cast("list[object]", listed)] if isinstance(listed, list) else []
    if 0 < size == len(several) == len(set(several)) and min(several) >= 0:
        return several
    return range(begin, begin + size * stride, stride) if begin >= 0 and stride > 0 and 0 < size <= MOST_RANKS else ()


def _member(members: Sequence[int], place: int) -> int:
    return members[place] if 0 <= place < len(members) else -1


def _whole(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_RANKS else -1
