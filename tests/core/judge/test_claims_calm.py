"""What calm requests lose to a cause is what one that is slow must stand out from, against a plain computation of both."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from teller_core.data.capture import Rank
from teller_core.judge import claims
from teller_core.judge.beside import BESIDE
from teller_core.judge.claims import CALM_ONES, FEW_NS, LASTING_SHARE, LEAST_SHARE, STANDS_OUT, STEADY
from teller_core.judge.evidence import Clue

SPAN = 1_000_000_000
UNKNOWN_TIME = -1
times = some.one_of(some.just(UNKNOWN_TIME), some.integers(1, 1000))
"""What a request took, or should have; shares of a second below."""
shares = some.integers(0, 60).map(lambda percent: percent / 100)


def case_of(table: list[tuple[int, int, int]]) -> Any:
    """Requests of (value, by work, by load)."""
    value, work, load = (np.array(column, np.int64) for column in zip(*table, strict=True))
    requests = SimpleNamespace(value=value, by_work=work, by_load=load)
    rows = {"e2e": np.arange(len(table), dtype=np.int64)}
    return SimpleNamespace(expected_rows=rows, assessment=SimpleNamespace(requests=requests))


def over(value: int, work: int, load: int) -> Fraction | None:
    """Times what it took of the least that its work or its load predicts, None where that is not known."""
    predicted = [each for each in (work, load) if each > 0]
    return Fraction(value, min(predicted)) if value > 0 and predicted else None


@given(some.lists(some.tuples(times, times, times), min_size=1, max_size=90))
def test_calm_ones_are_few_evenly_drawn_from_the_half_that_took_least_for_what_they_are(
    table: list[tuple[int, int, int]],
) -> None:
    ratio = {at: over(*row) for at, row in enumerate(table)}
    order = sorted((at for at, each in ratio.items() if each is not None), key=lambda at: (ratio[at], at))
    half = order[: len(order) // 2]
    drawn = claims._calm_ones(case_of(table), "e2e")
    if len(half) <= BESIDE:
        assert drawn == []
        return
    assert 1 <= len(drawn) <= CALM_ONES
    places = [half.index(at) for at in drawn]
    assert places[0] == 0 and len(set(np.diff(places).tolist())) <= 1
    assert len(half) - places[-1] <= -(-len(half) // CALM_ONES)


@given(some.lists(some.dictionaries(some.sampled_from("abc"), shares), max_size=8))
def test_of_calm_requests_each_is_asked_what_it_lost_to_each_cause(lost: list[dict[str, float]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "RULES", dict.fromkeys("abc"))
        patch.setattr(claims, "_calm_ones", lambda *_: list(range(len(lost))))
        patch.setattr(claims, "_lost", lambda _case, request, _metric: lost[request])
        found = claims._losses(SimpleNamespace(), "e2e")  # pyright: ignore[reportArgumentType]
    assert found == ({key: [one.get(key, 0.0) for one in lost] for key in "abc"} if lost else None)


def lasts(key: str, share: float, calm: dict[str, float] | None, near: list[float], worst: float) -> bool:
    """Whether a loss of this share counts as one that lasts, ``near`` the shares that the requests beside it lost."""
    known = {
        "calm, e2e": None if calm is None else {each: [0.0, calm.get(each, 0.0), 0.0] for each in CAUSES},
        "by arrival": SimpleNamespace(beside=lambda _: (range(len(near))[:1], range(len(near))[1:])),
    }
    view: Any = SimpleNamespace(
        span=SPAN,
        metric="e2e",
        life=SimpleNamespace(request=99),
        case=SimpleNamespace(once=lambda name, _: known[name]),
    )
    answers: Any = SimpleNamespace(worst=worst)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "_lost", lambda _case, request, _metric: {key: near[request]})
        return claims._lasts(view, answers, Clue(key, round(share * SPAN), 0.8, []))


CAUSES = [*sorted(STEADY), "frontend.gateway_overhead", "gpu.wrong_kernel", "host.gc_pause", "host.cpu_starvation"]


@given(
    some.sampled_from(CAUSES),
    shares,
    some.one_of(some.none(), some.dictionaries(some.sampled_from(CAUSES), shares)),
    some.lists(shares, max_size=2 * BESIDE),
    some.sampled_from([0.9, 1.0, 3.0]),
)
def test_a_loss_lasts_where_neighbors_share_it_and_of_everyday_ones_calm_requests_have_none_as_large(
    key: str, share: float, calm: dict[str, float] | None, near: list[float], worst: float
) -> None:
    least = LEAST_SHARE if key in claims.BROAD else LASTING_SHARE
    if key in claims.EVERYDAY or key in claims.ALWAYS_THERE:
        comparable = key in STEADY and worst >= 1.0 and calm is not None
        least = max(least, STANDS_OUT * (calm or {}).get(key, 0.0)) if comparable else float("inf")
    enough = round(share * SPAN) >= max(least * SPAN, FEW_NS)
    struck = [each for each in near if 2 * each >= least]
    assert lasts(key, share, calm, near, worst) == (
        enough and len(near) >= BESIDE and len(struck) >= len(near) - len(struck)
    )


@pytest.mark.parametrize(("share", "told"), [(0.29, False), (0.31, True)])
def test_one_and_a_half_times_what_calm_ones_lose_stands_out(share: float, told: bool) -> None:
    assert STANDS_OUT == 1.5
    assert lasts("host.blocking_call", share, {"host.blocking_call": 0.2}, [share] * BESIDE, 2.0) == told
    assert not lasts("host.blocking_call", share, None, [share] * BESIDE, 2.0)
    assert lasts("host.blocking_call", share, {}, [share] * BESIDE, 2.0)


@pytest.mark.parametrize(("share", "told"), [(0.59, False), (0.61, True)])
@pytest.mark.parametrize("key", sorted(claims.SHARED))
def test_what_most_calm_requests_lose_alike_beside_other_ranks_is_not_why_one_is_slow(
    key: str, share: float, told: bool
) -> None:
    crowded = True
    view: Any = SimpleNamespace(
        span=SPAN,
        metric="e2e",
        life=SimpleNamespace(request=99),
        case=SimpleNamespace(
            once=lambda name, _: {"calm, e2e": {key: [0.1, 0.4, 0.4, 0.4, 0.9]}, "crowded": crowded}[name],
            assessment=SimpleNamespace(learned=None),
            capture=SimpleNamespace(tier=4),
        ),
    )
    clue = Clue(key, round(share * SPAN), 0.8, [])

    def claimed(over_slo: float | None) -> bool:
        answers: Any = SimpleNamespace(worst=3.0, slow=True, over_slo=over_slo)
        return claims.claimed(view, answers, [clue]) == [clue]

    assert claimed(None) == claimed(0.9) == told
    # All of a capture may be in trouble: a limit that was broken says so, or what was learned elsewhere.
    assert claimed(1.1)
    elsewhere = SimpleNamespace(claims=SimpleNamespace(of=lambda *_: (0.1, 0.2)))
    view.case.assessment.learned = elsewhere
    assert claimed(None)
    # Nor is it an everyday loss of one process alone.
    view.case.assessment.learned, crowded = None, False
    assert claimed(None)


@pytest.mark.parametrize(("other", "told"), [(190, False), (210, True)])
@pytest.mark.parametrize(
    ("why", "what"), [("scheduler.grammar", "host.cpu_starvation"), ("frontend.detok_stream", "host.step_overhead")]
)
def test_what_takes_the_processors_is_told_and_not_that_others_waited_for_them(
    why: str, what: str, other: int, told: bool
) -> None:
    view: Any = SimpleNamespace(
        span=SPAN,
        metric="e2e",
        case=SimpleNamespace(
            once=lambda *_: None, assessment=SimpleNamespace(learned=None), capture=SimpleNamespace(tier=4)
        ),
    )
    answers: Any = SimpleNamespace(worst=3.0, slow=True, over_slo=None)
    clues = [Clue(why, 300_000_000, 0.8, []), Clue(what, 3 * other * 1_000_000, 0.8, [])]
    assert {clue.cause for clue in claims.claimed(view, answers, clues)} == ({why, what} if told else {why})


@pytest.mark.parametrize(
    ("ranks", "crowded"),
    [
        ([], False),
        ([("a", 7, 0)], False),
        ([("a", 7, 0), ("a", 7, 0)], False),  # two recordings of one process
        ([("a", 7, 0), ("a", 8, -1)], False),  # the front end is no rank
        ([("a", 7, 0), ("b", 8, 1)], False),
        ([("a", 7, 0), ("a", 8, 1), ("b", 9, 2)], True),
    ],
)
def test_a_host_is_crowded_where_several_ranks_compute_on_it(ranks: list[tuple[str, int, int]], crowded: bool) -> None:
    made = [Rank(number, host, pid, "", None, -1) for host, pid, number in ranks]
    case: Any = SimpleNamespace(capture=SimpleNamespace(ranks=made))
    assert claims._crowded(case) == crowded
