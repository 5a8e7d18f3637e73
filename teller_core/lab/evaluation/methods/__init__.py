"""The methods that are compared, in the order of their tables: ours first, the paper's last."""

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
from teller_core.model.judging import SHIPPED

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        ours.OURS,
        *((fused.METHOD, model.METHOD) if SHIPPED.is_file() else ()),
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


def method(name: str) -> Method:
    """The method called ``name``. Raises UnknownName for one that is not there."""
    for one in (fused.METHOD, model.METHOD):
        if name == one.name:
            return one  # where no weights ship, it says so itself
    if name not in METHODS:
        raise UnknownName("The method", "it is none of " + ", ".join(METHODS), "Name one of these")
    return METHODS[name]
