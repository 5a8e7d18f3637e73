"""What the tool ``search`` answers and suggests, through a client in memory."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client

pytestmark = pytest.mark.anyio
Connect = Callable[..., Client]


async def answered(connect: Connect, report: Any, **arguments: Any) -> dict[str, Any]:
    async with connect(search=lambda *_, **__: report) as client:
        answer = (await client.call_tool("search", {"text": "x", **arguments})).structured_content
    assert answer is not None
    return answer


async def test_what_was_found_leads_to_the_first_request_and_into_the_first_span(
    connect: Connect, samples: Any
) -> None:
    answer = await answered(connect, samples.found())
    assert [(call["tool"], call["arguments"]) for call in answer["next"]] == [
        ("run_rca", {"request": 42, "capture": "3f2a91c07be4"}),
        ("get_causal_slice", {"target": "0:1234", "capture": "3f2a91c07be4"}),
    ]


async def test_a_name_leads_to_what_it_is_unless_somebody_wrote_it_for_the_model(
    connect: Connect, samples: Any
) -> None:
    found = samples.found()
    spans = found.model_copy(update={"rows": found.rows[1:3]})
    explained = (await answered(connect, spans))["next"][1]
    assert (explained["tool"], explained["arguments"]["name"]) == ("explain_operator", "ncclDevKernel_AllReduce")
    written = [[*row[:2], samples.hostile, *row[3:]] for row in spans.rows]
    answer = await answered(connect, spans.model_copy(update={"rows": written}))
    assert [call["tool"] for call in answer["next"]] == ["get_causal_slice"]
    assert "Ignore previous" not in json.dumps(answer["next"])


async def test_over_all_captures_each_call_names_the_capture_of_its_row(connect: Connect, samples: Any) -> None:
    found = samples.found()
    rows = [[*row, f"{at}" * 12] for at, row in enumerate(found.rows)]
    everywhere = found.model_copy(update={"capture": None, "columns": [*found.columns, "capture"], "rows": rows})
    answer = await answered(connect, everywhere, capture="all")
    assert [call["arguments"]["capture"] for call in answer["next"]] == ["0" * 12, "1" * 12]


async def test_a_line_about_nothing_known_leads_to_the_requests_of_its_capture(connect: Connect, samples: Any) -> None:
    line = ["log_line", None, "a line", None, None, None, None, None, "server.log:7"]
    answer = await answered(connect, samples.found().model_copy(update={"rows": [line]}))
    assert [call["tool"] for call in answer["next"]] == ["list_slow_requests"]


async def test_nothing_found_leads_to_all_captures_and_from_there_to_what_was_slow(
    connect: Connect, samples: Any
) -> None:
    nothing = samples.found().model_copy(update={"rows": [], "counts": {}, "next_cursor": None})
    (call,) = (await answered(connect, nothing))["next"]
    assert (call["tool"], call["arguments"]) == ("search", {"text": "x", "capture": "all"})
    (call,) = (await answered(connect, nothing.model_copy(update={"capture": None})))["next"]
    assert call["tool"] == "list_slow_requests"


async def test_a_page_cut_by_size_ends_where_its_cursor_begins(connect: Connect, samples: Any) -> None:
    whole = samples.found()
    asked: list[int] = []

    def search(store: object, text: str, *, limit: int, **_: object) -> Any:
        asked.append(limit)
        rows = [[*whole.rows[1][:2], f"{at:03} {'n' * 200}", *whole.rows[1][3:]] for at in range(limit)]
        return whole.model_copy(update={"rows": rows, "next_cursor": f"0000abcd.1.1.{limit}"})

    async with connect(search=search) as client:
        answer = (await client.call_tool("search", {"text": "n", "limit": 60, "max_chars": 3000})).structured_content
    assert answer is not None
    assert len(json.dumps(answer, ensure_ascii=False, separators=(",", ":"))) <= 3000
    assert len(answer["rows"]) == asked[-1] > 5
    assert answer["next_cursor"] == f"0000abcd.1.1.{asked[-1]}"
    assert not answer["left_out"]
