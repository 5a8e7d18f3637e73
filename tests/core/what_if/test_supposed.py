"""What people write is taken at its word, or refused: a number that no step can take, and one thing said twice."""

import pytest

from teller_core.errors import InputError
from teller_core.what_if.supposed import LONGEST_NS, supposed


@pytest.mark.parametrize("duration", ["999999999999s", "3600.000001s", "1e30", "-1ms", "nan", "inf", "", "1h", "0x10"])
@pytest.mark.parametrize("target", ["step 1", "0:7", "aten::mm"])
def test_a_time_that_nothing_takes_is_refused(target: str, duration: str) -> None:
    with pytest.raises(InputError, match=r"longer than an hour|cannot be read"):
        supposed([f"{target}={duration}"])


def test_nothing_and_an_hour_are_times() -> None:
    assert [one.ns for one in supposed(["step 1=0", "step 2=3600s"])] == [0, LONGEST_NS]


@pytest.mark.parametrize(("one", "other"), [("step 17", "step  017"), ("0:7", "00:07"), ("mm", " mm ")])
def test_one_thing_is_one_however_it_is_written(one: str, other: str) -> None:
    with pytest.raises(InputError, match="one thing cannot have taken two times"):
        supposed([f"{one}=1ms", f"{other}=2ms"])


def test_a_handle_longer_than_any_is_a_name_like_others() -> None:
    assert supposed([f"0:{'9' * 5000}=1ms"])[0].kind == "operator"
