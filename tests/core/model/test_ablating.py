"""Ablations: each part left out once, and the networks of the paper."""

from dataclasses import replace
from pathlib import Path

import pytest

from teller_core.model.ablating import Row, ablate, lines_of
from teller_core.model.laying import laid
from teller_core.model.options import PAPER, Parts, Shape
from teller_core.model.preparing import lessened
from tests.core.model.making import SYMBOLS, inputs_of, sheets_of
from tests.core.model.test_training import QUICK, WORK

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
SHORT = replace(WORK, plan=replace(QUICK, updates=2))


def test_each_part_is_left_out_once_and_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    told: list[str] = []
    rows = ablate(SHORT, tmp_path, ("logs", *PAPER), 2, told.append)
    assert [row.part for row in rows] == ["nothing", "logs", *PAPER] and all(len(row.scores) == 2 for row in rows)
    folders = {path.name for path in tmp_path.iterdir()}
    assert {"without-nothing-0", "without-logs-1", "paper-two-streams-0", "paper-one-stream-1"} <= folders
    many = len(told)
    assert [row.part for row in ablate(SHORT, tmp_path, ("logs",), 2, told.append)] == ["nothing", "logs"]
    assert len(told) == many


def test_a_table_tells_the_mean_of_the_seeds_and_how_far_they_lie_apart() -> None:
    rows = [Row("nothing", [{"a": 0.5}, {"a": 0.7}]), Row("logs", [{"a": float("nan")}, {"a": float("nan")}])]
    assert lines_of(rows) == [
        "| on lives kept from training | without nothing | without logs |",
        "|---|---|---|",
        "| a | 0.600 ± 0.141 | - |",
    ]


@pytest.mark.parametrize("kind", PAPER)
def test_the_networks_of_the_paper_see_the_log_and_the_tokens_alone(kind: str) -> None:
    from teller_core.model.net.network import small

    torch.manual_seed(0)
    network = small(Shape(32, 2, 2, 16, 48, kind), SYMBOLS, 5).eval()
    whole = inputs_of(*sheets_of(20, 1), words=True)
    bare = lessened(whole, Parts(numbers=False, rules=False))
    with torch.inference_mode():
        one, other = network(laid(whole)), network(laid(bare))
        deaf = network(laid(lessened(whole, Parts(logs=False))))
    assert torch.allclose(one.cause, other.cause, atol=1e-4) and not torch.allclose(one.cause, deaf.cause, atol=1e-4)
