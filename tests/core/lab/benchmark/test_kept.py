"""The lives that are kept beside the tests are those that the table asks for, whole, and within their bounds."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from teller_core.lab.benchmark.build import MOST_BYTES
from teller_core.lab.benchmark.lives import SIDES, table
from teller_core.lab.benchmark.pack import LIVES, TRUTH, Packed, lives, packed_bytes
from teller_core.lab.blocks import HEALTHY, ROUNDS, TWINS
from teller_core.lab.injectors import injector

PACKED = Path(__file__).parents[3] / "lab"
KEPT = lives(PACKED)
LEAST_LIVES, LEAST_STRIKES, LEAST_CAUSES = 30, 300, 18


def test_every_life_is_one_that_is_asked_for_and_its_truth_says_so() -> None:
    asked = {plan.name: json.loads(json.dumps(asdict(plan))) for plan in table()}
    assert {life.name: life.about for life in KEPT} == {life.name: asked[life.name] for life in KEPT}
    assert {path.stem for path in (PACKED / TRUTH).iterdir()} == {path.stem for path in (PACKED / LIVES).iterdir()}
    assert packed_bytes(PACKED) <= MOST_BYTES


def test_there_are_lives_strikes_and_causes_enough_on_both_sides() -> None:
    strikes = [strike for life in KEPT for block in life.blocks for strike in block.strikes]
    assert len(KEPT) >= LEAST_LIVES and len(strikes) >= LEAST_STRIKES
    for side in SIDES:
        mine = [life for life in KEPT if life.about["side"] == side]
        moved = {
            s.cause for life in mine for block in life.blocks for s in block.strikes if s.rejected is None and s.cause
        }
        assert len(moved) >= LEAST_CAUSES


@pytest.mark.parametrize("life", KEPT, ids=lambda life: life.name)
def test_all_that_was_asked_for_was_done_and_stands_beside_its_twins(life: Packed) -> None:
    wanted, done = sorted(map(tuple, life.about["wanted"])), [s for block in life.blocks for s in block.strikes]
    assert sorted((strike.fault, strike.severity) for strike in done) == wanted
    for block in life.blocks:
        once = any(injector(strike.fault).act == "first" for strike in block.strikes)
        for turn in range(1 if once else ROUNDS):
            own = [window.strike for window in block.windows if window.round == turn and not window.profiled]
            assert sorted(own) == [*[HEALTHY] * TWINS, *range(len(block.strikes))]
        for strike in block.strikes:
            assert (strike.cause, strike.judged_by) == (injector(strike.fault).cause, injector(strike.fault).moves)
