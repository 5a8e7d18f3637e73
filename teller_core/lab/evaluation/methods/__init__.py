"""The methods that are compared: those of numbers and rules in the order of their tables, ours first, the paper's last; and those
that ask the model that ships, which are asked for by name: sheets of all judged steps take them ten minutes a tier.
"""

from collections.abc import Mapping

from teller_core.errors import UnknownName
from teller_core.lab.evaluation.method import Method
from teller_core.lab.evaluation.methods import (
    copula,
    critical_path,
    cross_rank,
    forest,
    fused,
    kde,
    logs,
    model,
    ours,
    paper,
    quantile,
    regression,
    zscore,
)

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        ours.OURS,
        ours.RULES,
        ours.NUMBERS,
        zscore.METHOD,
        quantile.METHOD,
        forest.METHOD,
        kde.METHOD,
        copula.METHOD,
        regression.METHOD,
        cross_rank.METHOD,
        critical_path.METHOD,
        logs.METHOD,
        paper.METHOD,
    )
}
MODELS: Mapping[str, Method] = {method.name: method for method in (fused.METHOD, model.METHOD)}
"""Where no weights ship, they say so."""
BY_NAME: Mapping[str, Method] = {**METHODS, **MODELS}


def method(name: str) -> Method:
    """The method called ``name``. Raises UnknownName for one that is not there."""
    if name not in BY_NAME:
        raise UnknownName("The method", "it is none of " + ", ".join(BY_NAME), "Name one of these")
    return BY_NAME[name]
