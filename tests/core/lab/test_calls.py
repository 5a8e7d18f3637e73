"""What the command line offers of the lab is what the lab has."""

from teller_core.calls import lab as calls
from teller_core.lab.benchmark import lives
from teller_core.lab.evaluation import results
from teller_core.lab.injectors import SEVERITIES
from teller_core.lab.mixes import MIXES
from teller_core.lab.model import SHAPES


def test_choices_are_those_of_the_lab_in_its_order() -> None:
    assert calls.SEVERITIES == SEVERITIES
    assert (*MIXES,) == calls.MIXES
    assert calls.MODELS == (*SHAPES,) == lives.MODELS
    assert calls.SIDES == lives.SIDES
    assert (*results.LEFT_OUT,) == calls.LEFT_OUT
