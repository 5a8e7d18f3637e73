"""Tables keep their columns at one length."""

from dataclasses import dataclass

import numpy as np
import pytest

from teller_core.data.table import Int64, Text, check_columns, columns, rows, take


@dataclass(frozen=True)
class Point:
    at: Int64
    name: Text
    unit: str = "ns"


POINTS = Point(np.array([3, 1, 2]), ["c", "a", "b"])


def test_columns_are_arrays_and_lists_of_text_only():
    assert list(columns(POINTS)) == ["at", "name"]
    assert rows(POINTS) == 3


def test_taking_rows_keeps_columns_together():
    picked = take(POINTS, np.array([2, 0]))
    assert (picked.at.tolist(), picked.name, picked.unit) == ([2, 3], ["b", "c"], "ns")
    assert take(POINTS, np.array([False, True, False])).name == ["a"]


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="differ in length"):
        check_columns(Point(np.array([1]), []))
