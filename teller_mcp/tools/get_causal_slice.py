"""``get_causal_slice``: the spans that bear on a step."""

import re
from typing import Annotated

from pydantic import Field

from teller_core.data.report import SliceReport
from teller_mcp.answers import CHARACTERS, NextCall, SliceAnswer, fit, is_plain, short, then
from teller_mcp.desk import Desk, ToolSpec
from teller_mcp.tools.arguments import Capture

SPAN = re.compile(r"\d+:\d+")
"""The handle of a span, RANK:ROW. Other lines stand for steps, requests and pauses."""
CHARACTERS_A_TOKEN = 2
"""Of numeric JSON, for the tokenizers of assistants."""


def get_causal_slice(
    desk: Desk,
    *,
    target: Annotated[str | int, Field(description="'request 42', 'step 17' or a span handle RANK:ROW")],
    budget: Annotated[int, Field(description="tokens", ge=200, le=9_000)] = 3_000,
    rank: Annotated[int | None, Field(ge=0)] = None,
    capture: Capture = None,
) -> SliceAnswer:
    """The spans that bear on one engine step or request: the call chain from request and engine over Python, operators and
    launches to kernels and communication, the unusual kept and the ordinary left out (cut says how many). depth is the
    nesting; residual is how far from normal (0 is normal, 3 is far); handle opens that span's own subtree."""
    with desk.store() as (verbs, store):
        report = verbs.causal_slice(store, str(target), capture=capture, rank=rank, budget=budget)
    limit = min(budget * CHARACTERS_A_TOKEN, CHARACTERS["full"])
    answer = fit(SliceAnswer(**dict(report), next=_next(report, str(target))), limit, (("lines", 1),))
    return answer if not answer.left_out else answer.model_copy(update={"cut": report.cut + answer.left_out["lines"]})


def _next(report: SliceReport, target: str) -> list[NextCall]:
    capture = short(report.capture)
    spans = [line for line in report.lines if SPAN.fullmatch(line.handle)]
    if not spans:
        requests = [line.handle.partition(":")[2] for line in report.lines if line.handle.startswith("request:")]
        request = report.request if report.request is not None else next(iter(requests), None)
        why = "no span is recorded: ask for the verdict"
        return [] if request is None else [then("run_rca", why, request=request, capture=capture)]
    odd = max(spans, key=lambda line: (line.residual or 0.0, line.self_ms))
    calls: list[NextCall] = []
    if odd.handle != target:
        calls.append(
            then("get_causal_slice", "the subtree of the most unusual span", target=odd.handle, capture=capture)
        )
    if is_plain(odd.text):
        calls.append(then("explain_operator", "what it is and how it usually does", name=odd.text, capture=capture))
    return calls


GET_CAUSAL_SLICE = ToolSpec(title="Causal slice of a step", run=get_causal_slice, answer=SliceAnswer)
