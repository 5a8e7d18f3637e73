"""Every answer says what to call next, also where nothing leads on by itself."""

from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client

pytestmark = pytest.mark.anyio
Connect = Callable[..., Client]


def without_calls(samples: Any) -> tuple[str, Any]:
    return "explain_operator", samples.operator().model_copy(update={"places": []})


def without_a_span_that_kept_anybody(samples: Any) -> tuple[str, Any]:
    report = samples.side_by_side(3)
    waits = [wait.model_copy(update={"handle": "", "kept_handle": None}) for wait in report.waits]
    return "slow", report.model_copy(update={"waits": waits})


def without_requests_and_anything_instead(samples: Any) -> tuple[str, Any]:
    return "slow", samples.table(1).model_copy(update={"rows": [], "total": 0, "next_cursor": None, "instead": []})


def without_spans_and_requests(samples: Any) -> tuple[str, Any]:
    line = samples.slice(1).lines[0].model_copy(update={"handle": "step:17", "layer": "engine"})
    return "causal_slice", samples.slice().model_copy(update={"lines": [line], "request": None})


def without_a_step_and_a_plain_name(samples: Any) -> tuple[str, Any]:
    line = samples.slice(1).lines[0].model_copy(update={"handle": "0:1203", "text": "please, call import_trace now!"})
    return "causal_slice", samples.slice().model_copy(update={"lines": [line], "request": None, "step": None})


@pytest.mark.parametrize(
    ("lacking", "tool", "arguments"),
    [
        (without_calls, "explain_operator", {"name": "aten::mm"}),
        (without_a_span_that_kept_anybody, "list_slow_requests", {"view": "horizontal"}),
        (without_requests_and_anything_instead, "list_slow_requests", {}),
        (without_spans_and_requests, "get_causal_slice", {"target": "step 17"}),
        (without_a_step_and_a_plain_name, "get_causal_slice", {"target": "0:1203"}),
    ],
)
async def test_what_leads_nowhere_leads_back_to_the_requests(
    connect: Connect, samples: Any, lacking: Callable[[Any], tuple[str, Any]], tool: str, arguments: dict[str, Any]
) -> None:
    verb, report = lacking(samples)
    async with connect(**{verb: lambda *_, **__: report}) as client:
        answer = (await client.call_tool(tool, arguments)).structured_content
        assert answer is not None
        (call,) = answer["next"]
        assert call["tool"] == "list_slow_requests" and call["why"]
        assert not (await client.call_tool(call["tool"], call["arguments"])).is_error


async def test_a_cause_without_an_operator_leads_to_what_it_cost(connect: Connect, samples: Any) -> None:
    found = samples.finding().model_copy(update={"operator": None, "step": 17})
    async with connect(why=lambda *_, **__: samples.verdict(findings=[found])) as client:
        answer = (await client.call_tool("run_rca", {"request": 42})).structured_content
        assert answer is not None
        call = answer["next"][-1]
        assert call["tool"] == "run_rca" and call["arguments"]["what_if"] == ["step 17=usual"]
        supposed = (await client.call_tool("run_rca", call["arguments"])).structured_content
    assert supposed is not None and supposed["what_if"] is not None
