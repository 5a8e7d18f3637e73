"""Words of a network: what it would say next does not depend on how its answer was read so far."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.model.inputs import taken
from teller_core.model.options import Shape
from tests.core.model.making import SYMBOLS, inputs_of, sheets_of

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from teller_core.model.laying import laid  # noqa: E402
from teller_core.model.net.decoding import speaker  # noqa: E402
from teller_core.model.net.network import Network, small  # noqa: E402

WORDS = 7
SHEETS = inputs_of(*sheets_of(30, 2))


@pytest.fixture(scope="module")
def network() -> Network:
    torch.manual_seed(3)
    return small(Shape(hidden=32, layers=2, heads=2, head=16, inner=48), SYMBOLS, WORDS).eval()


@settings(max_examples=25)
@given(st.integers(0, 29), st.integers(0, 99), st.integers(1, 9))
def test_scores_are_those_of_the_whole_answer_read_anew(network: Network, row: int, seed: int, many: int) -> None:
    one = taken(SHEETS, np.array([row]))
    facts = len(one.facts)
    chance = np.random.default_rng(seed)
    said = chance.integers(0, WORDS + facts, many).tolist()
    told = replace(one.wanted, words=np.array([*said, 0], dtype=np.int32), offsets=np.array([0, many + 1]))
    with torch.inference_mode():
        whole = network(laid(replace(one, wanted=told))).words.numpy()
    score = speaker(network, one)
    asked = sorted({0, many, *chance.integers(0, many + 1, 3).tolist()})
    for so_far in asked:
        np.testing.assert_allclose(score(said[:so_far]), whole[so_far, : WORDS + facts], atol=1e-4)


def test_a_fact_that_is_not_there_is_never_cited(network: Network) -> None:
    told = inputs_of(*sheets_of(30, 2), words=True)
    with torch.inference_mode():
        batch = laid(told)
        words = network(batch).words.numpy()
    facts = np.diff(told.facts.offsets)[batch.said_at // batch.length]
    there = np.arange(words.shape[1] - WORDS) < facts[:, None]
    assert (words[:, WORDS:][~there] < -1e3).all() and (words[:, WORDS:][there] > -1e3).all()
