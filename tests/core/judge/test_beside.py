"""Who came just before and just after a request."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.table import UNKNOWN
from teller_core.judge.beside import BESIDE, arrivals


class _Case:
    """Of a case what is asked for."""

    def __init__(self, starts: list[int]) -> None:
        self.starts = np.array(starts, np.int64)


@given(st.data())
def test_they_are_the_nearest_in_time_of_those_that_are_known(data: st.DataObject) -> None:
    starts = data.draw(st.lists(st.one_of(st.just(UNKNOWN), st.integers(0, 50)), max_size=12))
    some = np.array(data.draw(st.lists(st.booleans(), min_size=len(starts), max_size=len(starts))), np.bool_)
    case: Any = _Case(starts)
    for chosen in (None, some):
        found = arrivals(case, chosen)
        known = [at for at, time in enumerate(starts) if time != UNKNOWN and (chosen is None or some[at])]
        order = sorted(known, key=lambda at: (starts[at], at))
        for request in range(len(starts)):
            before, after = found.beside(request)
            if request not in order:
                assert (before, after) == ([], [])
                continue
            place = order.index(request)
            assert before == order[:place][-BESIDE:]
            assert after == order[place + 1 :][:BESIDE]
