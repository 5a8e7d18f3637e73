"""What tells is found, what does not tell is not, and nothing of a fault itself is looked at."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.lab.perturb.telling_apart import Asked, area, asked, seen
from tests.core.lab.perturb.test_episodes import episode


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_the_area_is_the_share_of_pairs_in_their_right_order(rows: list[tuple[int, bool]]) -> None:
    label = np.array([label for _, label in rows])
    score = np.array([score for score, _ in rows], dtype=np.float64)
    if label.all() or not label.any():
        return
    pairs = [1.0 if mine > other else 0.5 if mine == other else 0.0 for mine in score[label] for other in score[~label]]
    assert np.isclose(area(score, label), np.mean(pairs))


def questions(leak: float) -> list[Asked]:
    chance = np.random.default_rng(0)
    given: list[Asked] = []
    for one in range(30):
        label = np.arange(24) % 4 == 0
        value = chance.normal(0, 1, (24, 6))
        value[label, 2] += leak
        given.append(Asked(value, label, np.full(24, one % 6), np.full(24, one)))
    return given


def test_a_leak_is_told_and_noise_is_not() -> None:
    assert asked("leak", questions(1.0)).told
    assert not asked("noise", questions(0.0)).told


def test_what_one_recording_gives_away_is_told_where_none_can_be_held_out() -> None:
    alone = asked("leak", [one._replace(recording=np.zeros(24, dtype=np.int64)) for one in questions(1.0)])
    assert np.isnan(alone.by_recording) and alone.told


def test_a_column_of_which_nothing_is_known_tells_nothing() -> None:
    given = [one._replace(value=np.column_stack([one.value, np.full(24, np.nan)])) for one in questions(1.0)]
    assert asked("leak", given) == asked("leak", questions(1.0))
    nothing = [one._replace(value=np.full((24, 2), np.nan)) for one in questions(0.0)]
    assert asked("nothing", nothing).by_episode == 0.5


def test_what_a_fault_names_is_not_looked_at() -> None:
    found = episode("one", "slow_kernel", 3)
    steps = found.touched.shape[1]
    blind = seen(found.capture, steps, "slow_kernel", found.target.names, times=False)
    open_eyed = seen(found.capture, steps, "slow_kernel", (), times=False)
    touched = found.touched.reshape(-1)
    differs = [np.nan_to_num(np.abs(each[touched]).max(axis=0)).max() for each in (blind, open_eyed)]
    assert differs[1] > differs[0]
