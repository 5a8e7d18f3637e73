"""Which names are those of collectives, and of the kernels that carry them."""

import re

import numpy as np

from teller_core.data.table import UInt8

COLLECTIVE = re.compile(
    r"(nccl|rccl|oneccl|gloo:|_?c10d|record_param_comms|symm_mem::|vllm::all_|vllm::reduce_scatter)"
    r"|.*(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|all2all|cross_device_reduce|deep_?ep|ep_?dispatch|ep_?combine|nvshmem"
    r"|mscclpp|quick_?reduce|one_?shot_?(?:all|reduce)|two_?shot_?(?:all|reduce)|(?:put|wait)_signal|pplx)",
    re.IGNORECASE | re.DOTALL,
)
"""Names of collectives, and of the kernels that carry them: NCCL, RCCL, Gloo, torch.distributed, the custom all-reduce
kernels of the engines, DeepEP, MSCCL++, symmetric memory. The first group counts at the beginning of a name, the second anywhere
in it."""


LOOKED_AT = 4096
"""Characters of a name that are looked at: names of kernels reach a few thousand, and a file may hold one of millions."""


def communicates(names: list[str]) -> UInt8:
    """uint8 per name: 2 where it begins as a collective does, 1 where it speaks of one, 0 for any other."""
    found = [COLLECTIVE.match(name, 0, LOOKED_AT) for name in names]
    return np.array([0 if f is None else 2 if f.group(1) else 1 for f in found], dtype=np.uint8)
