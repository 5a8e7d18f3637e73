"""What operators and kernels are, by the patterns of their names: a short table that says nothing it does not know."""

import re
from collections.abc import Sequence
from typing import NamedTuple


class Family(NamedTuple):
    """A kind of operator: ``what`` it does in one sentence, and the causes of the taxonomy that usually trouble it."""

    pattern: re.Pattern[str]
    what: str
    troubles: Sequence[str]


def _family(pattern: str, what: str, *troubles: str) -> Family:
    return Family(re.compile(pattern, re.IGNORECASE), what, troubles)


FAMILIES: tuple[Family, ...] = (
    _family(
        r"multimem_all_?reduce|cross_device_reduce|custom_?all_?reduce|one_?shot_all_?reduce|two_?shot_all_?reduce",
        "A custom all-reduce of the engine over directly connected GPUs: it sums a tensor over the ranks of a group; its time "
        "is transfer plus waiting for the last rank.",
        "comm.straggler_rank",
        "comm.fabric_fallback",
    ),
    _family(
        r"deep_?ep|moe.*(dispatch|combine)|(dispatch|combine).*moe|all_?to_?all",
        "An all-to-all exchange: each rank sends every other rank its part, as experts on several ranks need.",
        "comm.moe_imbalance",
        "comm.straggler_rank",
    ),
    _family(
        r"^nccl|rccl|ncclDev|record_param_comms",
        "A collective of NCCL or RCCL: it moves a tensor between the ranks of a group; its time is transfer plus waiting for "
        "the last rank.",
        "comm.straggler_rank",
        "comm.degraded_link",
        "comm.fabric_fallback",
    ),
    _family(
        r"^gloo:|^c10d::|^_c10d_functional::",
        "A collective of torch.distributed: it moves a tensor between the ranks of a group; its time is transfer plus waiting "
        "for the last rank.",
        "comm.straggler_rank",
        "comm.degraded_link",
    ),
    _family(
        r"reshape_and_cache|kv_?cache|concat_and_cache",
        "Writing keys and values of new tokens into the KV cache.",
        "gpu.wrong_kernel",
    ),
    _family(
        r"flash|fmha|sdpa|scaled_dot_product|paged_?attention|attention|attn|\bmha\b",
        "Attention: every new token reads the keys and values of all tokens before it, so its time grows with the KV length.",
        "gpu.wrong_kernel",
        "host.slow_operator",
        "scheduler.prefill_interference",
    ),
    _family(
        r"grouped_?gemm|fused_?moe|moe",
        "The expert layers of a mixture-of-experts model: a matrix product for the tokens of each expert.",
        "comm.moe_imbalance",
        "gpu.wrong_kernel",
    ),
    _family(
        r"gemm|gemv|cublas|cutlass|nvjet|tensile|Cijk_|splitk|xmma|wgmma",
        "A matrix product on the device (a linear layer or part of one).",
        "gpu.wrong_kernel",
        "gpu.clock_throttle",
        "gpu.colocated_contention",
    ),
    _family(
        r"^aten::(addmm|mm|bmm|matmul|linear|baddbmm|_scaled_mm|einsum)$|^mkl|onednn|mkldnn",
        "A matrix product, as PyTorch calls it: on the CPU its time is the work, on a GPU it launches the kernel that does it.",
        "host.slow_operator",
        "host.cpu_starvation",
        "gpu.wrong_kernel",
    ),
    _family(
        r"^triton_|triton",
        "A kernel made by Triton, for the most part by torch.compile: several small operations fused into one.",
        "cuda.jit_compile",
        "gpu.wrong_kernel",
    ),
    _family(
        r"GraphLaunch",
        "The launch of a recorded CUDA or HIP graph: one call replays many kernels.",
        "cuda.graph_miss",
    ),
    _family(
        r"LaunchKernel|LaunchCooperative|ModuleLaunch",
        "The host puts one kernel into a stream's queue; long launches mean a full queue or a host that does not get to run.",
        "host.step_overhead",
        "host.cpu_starvation",
        "cuda.graph_miss",
    ),
    _family(
        r"Synchronize$|StreamWaitEvent|EventQuery",
        "The host waits for the device: a wait, not a cause; what counts is the work it waits for.",
        "cuda.host_device_sync",
    ),
    _family(
        r"memcpy|^aten::(to|_to_copy|copy_|item|_local_scalar_dense)$",
        "A copy, between host and device or within one of them; one that blocks lasts as long as the work queued before it.",
        "cuda.pageable_copy",
        "cuda.host_device_sync",
    ),
    _family(r"(cuda|hip)(Malloc|Free|HostAlloc|MemPool)", "Getting or freeing device memory.", "cuda.allocator"),
    _family(r"memset|fill_?kernel|^aten::(zero_|fill_|zeros)$", "Filling memory with one value."),
    _family(
        r"sampl|topk|top_k|argmax|multinomial|softmax|logits",
        "Choosing the next token: scores over the vocabulary are turned into a choice.",
        "host.step_overhead",
        "scheduler.grammar",
    ),
    _family(
        r"layer_?norm|rms_?norm|\bnorm\b|^aten::(mean|rsqrt|pow)$",
        "Normalization of the hidden states, or a part of it: bound by memory, not by arithmetic.",
        "host.memory_bandwidth",
    ),
    _family(r"rotary|rope", "Rotary position embedding: queries and keys are turned by their position."),
    _family(
        r"silu|gelu|swiglu|act_and_mul|relu",
        "The activation between the two products of an MLP: bound by memory.",
        "host.memory_bandwidth",
    ),
    _family(r"embedding|index_select|gather|^aten::index$", "Looking rows up in a table, as for embeddings."),
    _family(
        r"elementwise|vectorized|reduce_kernel|CatArray|^aten::(add|mul|cat|sub|div)_?$",
        "An operation on every element of a tensor: bound by memory, or by the launch where the tensor is small.",
        "host.step_overhead",
    ),
    _family(
        r"execute_|^cb\.|schedule|iteration|gpu_model_runner|step\[|ProfilerStep|forward$",
        "A range that the engine marks: it holds the operators of its part of a step; its own time is host work between them.",
        "host.step_overhead",
    ),
    _family(r"^nn\.Module", "A module of the model: it holds the operators of one layer or block."),
    _family(
        r"\.py\(\d+\)",
        "A Python function: its own time is host work between operators.",
        "host.step_overhead",
        "host.gc_pause",
    ),
    _family(r"^aten::", "An operator of PyTorch; this table does not know it more closely."),
)


def family_of(name: str) -> Family | None:
    """The first family whose pattern is in ``name``, None where nobody knows it."""
    return next((family for family in FAMILIES if family.pattern.search(name)), None)
