"""The models of scikit-learn that baselines stand on. It is imported here alone, when a baseline is trained.

What stands in files here are options and seeds alone: no fitted model is ever stored.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# scikit-learn has no types: what it gives is Any from here on.

import importlib
from collections.abc import Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from teller_core.data.table import Float64
from teller_core.errors import MissingExtra

PARTS = ("ensemble", "linear_model", "mixture")


def load() -> None:
    """Import what methods learn with, where it is installed: forks of this process need not."""
    if find_spec("sklearn") is not None:
        for name in PARTS:
            _part(name)


def _part(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"sklearn.{name}")
    except ImportError:
        raise MissingExtra("The baselines", "scikit-learn is not installed", "Install teller-mcp[lab]") from None


def isolation_forest(value: Float64, *, trees: int, samples: float, seed: int) -> Any:
    """Isolation forest (Liu, Ting and Zhou 2008) on rows without NaN."""
    made: Any = _part("ensemble").IsolationForest(n_estimators=trees, max_samples=samples, random_state=seed)
    return made.fit(value)


def boosted_trees(value: Float64, target: Float64, *, leaves: int, rate: float, loss: str, seed: int) -> Any:
    """Gradient-boosted regression trees on histograms (Ke and others 2017); NaN is a value of its own."""
    made: Any = _part("ensemble").HistGradientBoostingRegressor(
        max_leaf_nodes=leaves, learning_rate=rate, loss=loss, max_iter=200, random_state=seed, early_stopping=False
    )
    return made.fit(value, target)


def logistic(value: Float64, label: Sequence[str], *, strength: float) -> Any:
    """Multinomial logistic regression, classes weighed alike; ``strength``: the inverse of the penalty."""
    made: Any = _part("linear_model").LogisticRegression(C=strength, class_weight="balanced", max_iter=500, tol=1e-3)
    return made.fit(value.astype(np.float32), np.array(label, dtype=object))


class Mixture(NamedTuple):
    """A diagonal Gaussian mixture: ``weight`` float64 a component, ``middle`` and ``width`` float64 [components, columns]."""

    weight: Float64
    middle: Float64
    width: Float64

    def posterior(self, value: Float64) -> Float64:
        """float64 [rows, components]: how likely each is to have made a row. It is asked thousands of times about a few rows."""
        away = ((value[:, None, :] - self.middle) / self.width) ** 2
        log = np.log(self.weight) - np.log(self.width).sum(axis=1) - 0.5 * away.sum(axis=2)
        share = np.exp(log - log.max(axis=1, keepdims=True))
        return share / share.sum(axis=1, keepdims=True)


def mixture(value: Float64, parts: int, seed: int) -> Mixture:
    """Fitted by expectation and maximization."""
    made: Any = _part("mixture").GaussianMixture(
        parts, covariance_type="diag", reg_covar=1e-4, random_state=seed, max_iter=200
    )
    made.fit(value)
    weight, middle, variance = (
        np.asarray(each, np.float64) for each in (made.weights_, made.means_, made.covariances_)
    )
    return Mixture(weight, middle, np.sqrt(variance))


def log_likelihood(model: Any, value: Float64) -> Float64:
    """float64 a row: how likely, in logs, a density finds it."""
    return np.asarray(model.score_samples(value), dtype=np.float64)


def probabilities(model: Any, value: Float64) -> tuple[list[str], Float64]:
    """(classes, float64 [rows, classes])."""
    return [str(name) for name in model.classes_], np.asarray(model.predict_proba(value), dtype=np.float64)


def weights(model: Any) -> Float64:
    """float64 a column: the largest weight that a logistic regression gives it for any class."""
    return np.abs(np.asarray(model.coef_, dtype=np.float64)).max(axis=0)
