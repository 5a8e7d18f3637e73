"""Names are made readable and can do no harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.tell.names import LONGEST, demangled, shorten

ELEMENTWISE = "at::native::vectorized_elementwise_kernel"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("aten::mm", "aten::mm"),
        ("execute_context_2(63)_generation_0(0)", "execute_context_2(63)_generation_0(0)"),
        ("step[EXTEND bs=15 toks=15360]", "step[EXTEND bs=15 toks=15360]"),
        ("torch/nn/modules/module.py(1773): _call_impl", "torch/nn/modules/module.py(1773): _call_impl"),
        ("nn.Module: LlamaDecoderLayer_3", "nn.Module: LlamaDecoderLayer_3"),
        (f"void {ELEMENTWISE}<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, float)", ELEMENTWISE),
        ("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEviT0_T1_", ELEMENTWISE),
        ("_Z10my_kernel_Pfi", "my_kernel_"),
        ("_ZN12_GLOBAL__N_13addEPf", "add"),
        ("void (anonymous namespace)::scan_kernel<int, at::native::arange>(int)", "scan_kernel"),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
        ),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(x)", "internal::gemvx::kernel"),
        ("operator<< <int>(std::ostream&)", "operator<<"),
        ("<lambda>", "<lambda>"),
        ("a\x00b\u202ec\nd", "a b c d"),
        ("", "(no name)"),
        ("\n\t", "(no name)"),
    ],
)
def test_a_name_is_brought_to_what_people_call_it(name: str, short: str) -> None:
    assert shorten(name) == short


@given(st.text(alphabet=st.characters(), max_size=300) | st.text("_ZN0123456789<>():, abEK\n", max_size=60))
def test_any_text_becomes_one_short_line(name: str) -> None:
    short = shorten(name)
    assert 0 < len(short) <= LONGEST
    assert short.isprintable()
    assert len(short.splitlines()) == 1


@given(st.lists(st.from_regex(r"[a-z_][a-z0-9_]{0,12}", fullmatch=True), min_size=1, max_size=4))
def test_a_mangled_nested_name_gives_its_scopes_back(parts: list[str]) -> None:
    assert demangled("_ZN" + "".join(f"{len(part)}{part}" for part in parts) + "Ev") == "::".join(parts)


def test_a_long_scoped_name_keeps_its_function_and_a_long_plain_one_its_beginning() -> None:
    assert shorten("a_namespace::" * 12 + "the_kernel").endswith("::the_kernel")
    assert shorten("x" * 200).startswith("xxx")
