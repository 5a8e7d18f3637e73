"""What names of operators and kernels say of the collective."""

import pytest

from teller_core.ingest.collective_names import communicates
from teller_core.rebuild.collective_kinds import PATTERNS, Pattern, kind_of


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: f"{pattern.kind.name}-{pattern.sample[:24]}")
def test_every_pattern_knows_its_sample_and_readers_take_it_for_communication(pattern: Pattern) -> None:
    assert kind_of(pattern.sample) == pattern.kind
    assert communicates([pattern.sample])[0] > 0


@pytest.mark.parametrize(
    ("name", "kind", "synchronous"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "all_reduce", True),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather", True),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce_scatter", True),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "send_recv", False),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "collective", False),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>", "all_reduce", True),
        ("void vllm::cross_device_reduce_2stage<__half, 8>", "all_reduce", True),
        ("void quickreduce::allreduce_prototype_twoshot<half>", "all_reduce", True),
        ("flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport", "all_reduce", True),
        ("mscclpp::allreduce7<__half>", "all_reduce", True),
        ("void one_shot_all_reduce_kernel<c10::BFloat16>", "all_reduce", True),
        ("void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>", "combine", False),
        ("void deep_ep::internode_ll::dispatch<true, 3, 7168>", "dispatch", False),
        ("void deep_ep::intranode::notify_dispatch<8>", "dispatch", True),
        ("nccl:_all_gather_base", "all_gather", True),
        ("_allgather_base", "all_gather", True),
        ("c10d::alltoall_base_", "all_to_all", True),
        ("gloo:broadcast", "broadcast", False),
        ("nccl:reduce", "reduce", False),
    ],
)
def test_the_names_of_many_libraries(name: str, kind: str, synchronous: bool) -> None:
    found = kind_of(name)
    assert found is not None
    assert (found.name, found.synchronous) == (kind, synchronous)


@pytest.mark.parametrize(
    "name", ["aten::mm", "void cutlass::Kernel2<...>", "Memcpy DtoD", "aten::gather", "aten::scatter_add_"]
)
def test_other_operators_are_no_collectives(name: str) -> None:
    assert kind_of(name) is None
