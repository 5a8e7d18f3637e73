"""Times as people read them."""

import pytest

from teller_core.data.dates import date_of
from teller_core.data.table import UNKNOWN

MOMENT = 1_785_579_324_900_999_999


@pytest.mark.parametrize(
    ("time", "said"),
    [(MOMENT, "2026-08-01 10:15:24.900"), (None, None), (UNKNOWN, None), (1_000 * 10**9, None), (0, None)],
)
def test_a_date_is_said_to_the_millisecond_and_never_made_up(time: int | None, said: str | None) -> None:
    assert date_of(time) == said
