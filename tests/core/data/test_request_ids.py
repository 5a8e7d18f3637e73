"""Ids of requests, in the spellings in which people have them."""

import pytest

from teller_core.data.request_ids import id_forms

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
DASHED = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"


@pytest.mark.parametrize(
    "given",
    [
        f"00-{TRACE}-00f067aa0ba902b7-01",
        f"traceparent: 00-{TRACE}-00f067aa0ba902b7-01",
        f"b3={TRACE}-00f067aa0ba902b7-1",
        f'# {{trace_id="{TRACE}"}} 0.67 1520879607.789',
        f'vllm:e2e_bucket{{le="1"}} 7 # {{traceID="{TRACE}",span_id="00f067aa0ba902b7"}} 0.67',
        f"  {TRACE}\n",
    ],
)
def test_a_trace_is_called_by_its_id_out_of_headers_and_exemplars(given: str) -> None:
    assert id_forms(given) == [TRACE, DASHED]


def test_an_id_of_128_bits_may_be_written_with_dashes_and_without() -> None:
    assert id_forms(DASHED) == [DASHED, TRACE]
    assert id_forms(TRACE.upper()) == [TRACE.upper(), DASHED.upper()]


@pytest.mark.parametrize("given", ["cmpl-0001-2", "00-abc-01", "1-1", "", f"{TRACE}0", f"chatcmpl-{TRACE}"])
def test_any_other_id_is_taken_as_it_is_dashes_and_all(given: str) -> None:
    assert id_forms(given) == [given]
