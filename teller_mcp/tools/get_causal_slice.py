"""``get_causal_slice``: the spans that bear on a step."""

from typing import Annotated

from pydantic import Field

from teller_core.data.report import SliceReport
from teller_core.tell.next_calls import is_span, most_unusual, opened_by
from teller_mcp.answers import NextCall, SliceAnswer, fit, is_plain, room, short, then
from teller_mcp.desk import Desk, ToolSpec
from teller_mcp.tools.arguments import Capture, Detail, MaxChars

CHARACTERS_A_TOKEN = 2
"""Of numeric JSON, for the tokenizers of assistants."""


def get_causal_slice(
    desk: Desk,
    *,
    target: Annotated[str | int, Field(description="'request 42', 'step 17' or a span handle RANK:ROW")],
    rank: Annotated[int | None, Field(ge=0)] = None,
    capture: Capture = None,
    detail: Detail = "normal",
    max_chars: MaxChars = None,
) -> SliceAnswer:
    """The spans that bear on one engine step or request: the call chain from request and engine over Python, operators and
    launches to kernels and communication, the unusual kept and the ordinary left out (cut says how many). depth is the
    nesting; residual is how far from normal (0 is normal, 3 is far); handle opens that span's own subtree."""
    limit = room(detail, max_chars)
    with desk.store() as (verbs, store):
        report = verbs.causal_slice(store, str(target), capture=capture, rank=rank, budget=limit // CHARACTERS_A_TOKEN)
    answer = fit(SliceAnswer(**dict(report), next=_next(report, str(target))), limit, (("lines", 1),))
    return answer if not answer.left_out else answer.model_copy(update={"cut": report.cut + answer.left_out["lines"]})


def _next(report: SliceReport, target: str) -> list[NextCall]:
    capture = short(report.capture)
    odd = most_unusual(report)
    if odd is None:
        requests = [line.handle.partition(":")[2] for line in report.lines if line.handle.startswith("request:")]
        request = report.request if report.request is not None else next(iter(requests), None)
        if request is None:
            return [then("list_slow_requests", "no span is recorded: what there is instead", capture=capture)]
        return [then("run_rca", "no span is recorded: ask for the verdict", request=request, capture=capture)]
    calls: list[NextCall] = []
    inside = opened_by(report, odd)
    if inside is not None and inside.handle != target:
        what = "the most unusual span" if odd.residual is not None else "the span with the most time of its own"
        why = f"the subtree of {what}" if inside is odd else f"{what} has nothing in it: where there is more to see"
        calls.append(then("get_causal_slice", why, target=inside.handle, capture=capture))
    elif report.step is not None and is_span(report.lines[0].handle):
        calls.append(then("get_causal_slice", "its whole step", target=f"step {report.step}", capture=capture))
    if is_plain(odd.text):
        calls.append(then("explain_operator", "what it is and how it usually does", name=odd.text, capture=capture))
    return calls or [then("list_slow_requests", "nothing is below it: the requests", capture=capture)]


GET_CAUSAL_SLICE = ToolSpec(title="Causal slice of a step", run=get_causal_slice, answer=SliceAnswer)
