"""A kernel's name is taken apart, and what it does not say stays unsaid."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.tell.kernel_names import kernel_name, kernel_named

TRACES = Path(__file__).parents[4] / "shared/traces/kineto"
MUL = "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >"
UNKNOWN = {"attn_fwd", "void rotary_embedding_kernel"}
"""Names of the real traces that several libraries could have given."""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "cuBLASLt bf16 192x192x64 4 - TNN -"),
        ("nvjet_sm103_tst_32x64_64x16_4x1_v_bz_splitK_TNN", "cuBLASLt bf16 32x64x64 16 sm103 TNN -"),
        ("nvjet_qqtst_128x96_128x7_2x1_v_bz_TNT", "cuBLASLt - 128x96x128 7 - TNT -"),
        ("volta_sgemm_64x64_nt", "cuBLAS fp32 64x64 - volta NT -"),
        ("ampere_sgemm_32x32_sliced1x4_tn", "cuBLAS fp32 32x32 - ampere TN -"),
        (
            "ampere_fp16_s16816gemm_fp16_128x128_ldg8_relu_f2f_stages_32x5_tn",
            "cuBLAS fp16 128x128x32 5 ampere TN relu",
        ),
        ("ampere_gcgemm_64x64_nt", "cuDNN - 64x64 - ampere NT -"),
        ("cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", "cuDNN fp32 128x64 - volta NN -"),
        (
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
            "cuBLAS bf16/fp32 128x128x64 - sm90 TN -",
        ),
        (
            "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_cudnn",
            "cuDNN tf32/fp32 128x128x16 4 sm80 NCHW -",
        ),
        (
            "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1>(cutlass_80_tensorop::Params)",
            "CUTLASS - 128x64x32 6 sm80 NT -",
        ),
        (
            "void cutlass::Kernel<cutlass_70_wmma_tensorop_f16_s161616gemm_f16_32x32_64x2_tn_align8>(x::Params)",
            "CUTLASS fp16 32x32x64 2 sm70 TN -",
        ),
        (
            "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x128_32x3_nhwc_align4>(x::Params)",
            "cuDNN_(CUTLASS) tf32 64x128x32 3 - NHWC -",
        ),
        (
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN_LDSB1_ISA942_IU1",
            "hipBLASLt_(Tensile) bf16 128x256x32 - gfx942 TN -",
        ),
        (
            "Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT128x64x32_MI32x32x1_SN_ISA90a_IU1",
            "hipBLASLt_(Tensile) bf16 128x64x32 - gfx90a NT -",
        ),
        ("Cijk_Ailk_Bljk_SB_MT64x32x16_SE_1LDSB0_ISA906_K1", "rocBLAS_(Tensile) fp32 64x32x16 - gfx906 NN -"),
        (
            "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)64, (int)4, (bool)0, (bool)0, "
            "cutlass::bfloat16_t>>(flash::Flash_fwd_params)",
            "FlashAttention bf16 128x64 - - - -",
        ),
        (
            "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64MultiCtasKvCgaVarSeqQ8Kv128StaticSwapsAbForGen",
            "TensorRT-LLM bf16 8x128 - sm100f - -",
        ),
        (
            "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
            "TensorRT-LLM fp8/bf16 128x128 - sm100a - -",
        ),
        (
            "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut_biasM_swiGlu_"
            "dynBatch_sm100f",
            "TensorRT-LLM mxfp4/mxfp8/fp32 128x16x256 3 sm100f TN swiglu",
        ),
        (
            "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
            "Triton_(triton_kernels) bf16/mxfp4 16x128x256 - - NNT swiglu",
        ),
        ("triton_poi_fused__unsafe_view_mul_silu_2", "Triton_(torch.compile) - - - - - silu"),
        (
            "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
            "NCCL_or_RCCL fp32 - - - - -",
        ),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "NCCL_or_RCCL bf16 - - - - -"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, ncclWork*)", "NCCL_or_RCCL - - - - - -"),
        (
            f"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<{MUL} >(at::TensorIteratorBase&, "
            "double)::{lambda(int)#1}>(int, float)",
            "PyTorch bf16/fp32 - - - - -",
        ),
        ("void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*, long, float, int)", "vLLM bf16 - - - - -"),
        (
            "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i",
            "SGLang bf16 - - - - silu",
        ),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_", "AITER bf16 - - - - -"),
        ("void tensorrt_llm::kernels::quantize<__nv_bfloat16>(flashinfer::Layout)", "TensorRT-LLM bf16 - - - - -"),
        ("igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt32x256x32_wt16x64x4_ws1x1", "MIOpen bf16 32x256x32 - - NHWC -"),
    ],
)
def test_a_name_says_whose_kernel_it_is_and_how_it_was_made(name: str, said: str) -> None:
    kernel = kernel_name(name)
    assert kernel is not None
    parts = (kernel.library.replace(" ", "_"), kernel.precision, kernel.tile, kernel.stages, kernel.architecture)
    assert " ".join(str(part or "-") for part in (*parts, kernel.layout, kernel.activation)) == said


@pytest.mark.parametrize("name", ["saxpy(double*, double*, double)", "attn_fwd", "my_gemm_128x64", "aten::mm", ""])
def test_a_name_of_no_known_form_says_nothing(name: str) -> None:
    assert kernel_name(name) is None


def test_kernels_of_one_short_name_say_what_all_of_them_say() -> None:
    one, other = "nvjet_tst_64x16_64x16_2x4_2cta_h_bz_bias_TNT", "nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT"
    said = kernel_named([one, other])
    assert said is not None
    assert (said.library, said.precision, said.tile, said.stages) == ("cuBLASLt", "bf16", None, 16)
    assert kernel_named([one, "volta_sgemm_64x64_nt"]) is None
    assert kernel_named([]) is None


@given(st.text(max_size=200) | st.text("_ZN0123456789<>():, abcgemmxnt\n", max_size=90))
def test_whatever_a_name_holds_only_words_digits_and_letters_come_back(name: str) -> None:
    said = kernel_name(name)
    told = [] if said is None else [str(value) for value in said.model_dump().values() if value is not None]
    assert all(text.isprintable() and len(text) < 60 for text in told)


@pytest.mark.skipif(not TRACES.exists(), reason="no real traces beside the checkout (../shared)")
def test_all_kernels_of_the_real_traces_are_known_but_those_that_say_nothing() -> None:
    names = {name for path in sorted(TRACES.glob("*/*.json.gz")) for name in _kernels(path)}
    assert len(names) > 500
    assert {name.partition("<")[0] for name in names if kernel_name(name) is None} == UNKNOWN


def _kernels(path: Path) -> Iterator[str]:
    said: Any = json.loads(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
    events = said["traceEvents"] if isinstance(said, dict) else said
    yield from (
        event["name"] for event in events if event.get("ph") == "X" and event.get("cat") in ("kernel", "Kernel")
    )
