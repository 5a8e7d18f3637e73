"""What kind of collective a name speaks of: one table of patterns for all who carry tensors between ranks.

A kind is synchronous where the collective ends on no rank before it has begun on every rank: each then needs something from all
others. A broadcast's root, a send, and a kernel that only hands its tokens over may end long before the others begin.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple


class Kind(NamedTuple):
    """``name`` of the kind; ``definite``: it says what is done, not only that ranks talk."""

    name: str
    synchronous: bool
    definite: bool = True


class Pattern(NamedTuple):
    """A form of names. ``sample`` is the name of a real operator or kernel."""

    kind: Kind
    regex: str
    sample: str


DISPATCH, COMBINE = Kind("dispatch", False), Kind("combine", False)
SEND = Kind("send_recv", False, False)
TALK = Kind("collective", False, False)

PATTERNS: tuple[Pattern, ...] = (
    Pattern(Kind("barrier", True), r"barrier|nvshmem\w*_sync", "gloo:barrier"),
    # DeepEP within a node awaits the counts of all ranks before the first token moves. Between nodes a kernel may only send.
    Pattern(Kind("dispatch", True), r"intranode::(?:\w+_)?dispatch|notify_dispatch", "deep_ep::intranode::dispatch<8>"),
    Pattern(
        DISPATCH, r"deep_?ep\W.*dispatch|ep_?dispatch|pplx.*dispatch|moe_?dispatch", "deep_ep::internode_ll::dispatch"
    ),
    Pattern(COMBINE, r"deep_?ep\W.*combine|ep_?combine|pplx.*combine|moe_?combine", "deep_ep::intranode::combine<8>"),
    Pattern(Kind("all_to_all", True), r"all_?to_?all|all2all|a2a_kernel", "nccl:all_to_all"),
    Pattern(Kind("reduce_scatter", True), r"reduce_?scatter", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"),
    Pattern(
        Kind("all_reduce", True),
        r"all_?reduce|cross_device_reduce|quick_?reduce|(?:one|two)_?shot|ar_fusion|userbuffers.*(?:rs|ag|ar)_",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>",
    ),
    Pattern(Kind("all_gather", True), r"all_?gather", "ncclDevKernel_AllGather_RING_LL"),
    Pattern(Kind("broadcast", False), r"broadcast|\bbcast", "ncclKernel_Broadcast_RING_LL_Sum_int8_t"),
    Pattern(
        Kind("reduce", False),
        r"(?:nccl|rccl|gloo|c10d|ucc|oneccl)\w*[:_]+_?reduce",
        "ncclDevKernel_Reduce_Sum_f32_RING_LL",
    ),
    Pattern(Kind("gather", False), r"(?:nccl|rccl|gloo|c10d|ucc|oneccl)\w*[:_]+_?gather", "gloo:gather"),
    Pattern(Kind("scatter", False), r"(?:nccl|rccl|gloo|c10d|ucc|oneccl)\w*[:_]+_?scatter", "gloo:scatter"),
    Pattern(SEND, r"send|recv|put_signal|wait_signal|nvshmem\w*_(?:put|get|signal)", "ncclDevKernel_SendRecv"),
    Pattern(TALK, r"[nr]ccl|oneccl|mscclpp|nvshmem|deep_?ep|record_param_comms", "ncclDevKernel_Generic_1"),
)
"""In the order in which they are asked. RCCL calls all of its kernels Generic, and NCCL an all-to-all SendRecv: what was called
above them says the kind."""

_COMPILED = tuple((pattern.kind, re.compile(pattern.regex, re.IGNORECASE)) for pattern in PATTERNS)
LONGEST = 512
"""Letters of a name that are looked at: templates of kernels may be long."""


def kind_of(name: str) -> Kind | None:
    """The kind of collective that ``name`` speaks of, None where it speaks of none."""
    return next((kind for kind, regex in _COMPILED if regex.search(name, 0, LONGEST)), None)


def kinds_of(names: Sequence[str]) -> list[Kind | None]:
    """:func:`kind_of` of each name."""
    return [kind_of(name) for name in names]
