"""What an operator was called with, told in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.shapes import TOLD, shapes_of


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"Input Dims":[[32,16],[16],[]],"Input type":["float","long int","Scalar"]}', "float[32x16], long int[16]"),
        ('{"Input Dims":[[],[8]],"Input type":["","c10::Half"]}', "c10::Half[8]"),
        ('{"Input Dims":[[[2,3],[4]],[]],"Input type":["TensorList","Scalar"]}', "2 tensors[2x3]"),
        ('{"Input Dims":[[]],"Input type":["TensorList"]}', ""),
        ('{"Input Dims":[[1]]}', "?[1]"),
        ('{"Input Dims":' + str([[k] for k in range(1, 11)]) + ',"Input type":' + str(["float"] * 10).replace("'", '"') + "}",
         "float[1], float[2], float[3], float[4], float[5], float[6], float[7], float[8], and 2 more"),
        ('{"External id":5}', ""),
        ('{"Input Dims":7,"Input type":"x"}', ""),
        ('{"Input Dims":[["a"],null,[true],[1.5]],"Input type":["float","float","float","float"]}', ""),
        ('["Input Dims"]', ""),
        ('{"Input Dims":[[', ""),
    ],
)  # fmt: skip
def test_tensors_are_told_with_type_and_sizes_and_nothing_else_is(arguments: str, words: str) -> None:
    assert shapes_of(arguments) == words


@given(st.text(max_size=60))
def test_any_text_is_told_or_passed_over(text: str) -> None:
    assert isinstance(shapes_of(TOLD + text), str)
    assert isinstance(shapes_of("{" + TOLD + ":" + text), str)
