"""The real recordings that episodes are made of, and on which side each stands: those of one program on one machine on one."""

from pathlib import Path
from typing import NamedTuple

from teller_core.lab.evaluation.episode import TEST, TRAIN


class Recording(NamedTuple):
    """``path``: below one of the folders that are searched."""

    name: str
    side: str
    path: str


RECORDINGS: tuple[Recording, ...] = (
    Recording("ddp_a100", TRAIN, "kineto/hta_ddp_a100_2rank"),
    Recording("resnet_v100", TRAIN, "kineto/kineto_1.9_resnet50_v100"),
    Recording("decode_b300", TRAIN, "kineto/sglang_qwen3_30b_a3b_b300"),
    Recording("prefill_b200", TRAIN, "kineto/vllm_b200_tp8_rank0_prefill"),
    Recording("kernels_mi210", TRAIN, "kineto/gpu_only_mi210"),
    Recording("video_before", TRAIN, "nsys/fastvideo_2gpu_before_2026.2_schema3.25.0.sqlite"),
    Recording("video_after", TRAIN, "nsys/fastvideo_2gpu_after_2026.2_schema3.25.0.sqlite"),
    Recording("gloo_delay", TRAIN, "tp_delay"),
    Recording("gloo_recorded", TRAIN, "tp_fr"),
    Recording("vllm_full", TRAIN, "vllm_full"),
    Recording("vllm_shim", TRAIN, "vllm_shim"),
    Recording("vllm_profile", TRAIN, "vllm_engine_profile/torch"),
    Recording("training_v100", TEST, "kineto/hta_ns_resolution_v100"),
    Recording("recommender_v100", TEST, "kineto/param_dlrm_8rank_v100"),
    Recording("recommender_sampled", TEST, "kineto/hta_sampled_2of128"),
    Recording("decode_mi300", TEST, "kineto/vllm_rocm_decode_full_graph"),
    Recording("extend_mi300", TEST, "kineto/sglang_rocm_qwen3_8b_extend"),
    Recording("transformers_h100", TEST, "kineto/transformers_h100_qwen1.5_0.5b"),
    Recording("compiled_mi300", TEST, "kineto/torch_compile_triton_mi300"),
    Recording("hydrodynamics_a100", TEST, "nsys/cloverleaf_2024.5_schema3.13.2.sqlite"),
    Recording("two_nodes", TEST, "vllm_2node"),
    Recording("transformers_serve", TEST, "tfserve_shim"),
)


def found(folders: list[Path]) -> list[tuple[Recording, Path]]:
    """Which of RECORDINGS there are, and where: each in the first of ``folders`` that has it."""
    places = [
        (one, next((place for folder in folders if (place := folder / one.path).exists()), None)) for one in RECORDINGS
    ]
    return [(one, place) for one, place in places if place is not None]
