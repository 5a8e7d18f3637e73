"""What a method is shown of a capture. What several methods read off it is measured once."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.table import Float64, Int64, Mask
from teller_core.judge.assess import assess
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.request_numbers import request_numbers
from teller_core.lab.evaluation.step_features import StepFeatures, step_features

Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Seen:
    """A capture without the names that somebody gave it. ``asked`` bool a request, ``asked_steps`` bool a step: whether an answer
    is wanted of it, None for all: other answers are thrown away, so that who needs long for one need not make it.
    """

    capture: Capture
    asked: Mask | None = None
    asked_steps: Mask | None = None
    measured: dict[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)
    """By who needs it, by name."""

    def once(self, name: str, measure: Callable[["Seen"], Measured]) -> Measured:
        """What ``measure`` says of this capture, measured when it is first asked for."""
        if name not in self.measured:
            self.measured[name] = measure(self)
        return self.measured[name]

    def measure(self) -> None:
        """Measure what all methods read off it: now, before forks would each do it."""
        _ = self.steps, self.requests

    @property
    def requests_asked(self) -> Int64:
        """The positions of the requests that an answer is wanted of."""
        return _positions(self.asked, len(self.capture.requests.number))

    @property
    def steps_asked(self) -> Int64:
        """The positions of such steps."""
        return _positions(self.asked_steps, len(self.capture.steps.engine))

    @cached_property
    def assessment(self) -> Assessment:
        """What our numbers say."""
        return assess(self.capture)

    @cached_property
    def case(self) -> Case:
        """The capture with its indexes."""
        return prepare(self.capture, self.assessment)

    @cached_property
    def steps(self) -> StepFeatures:
        """Its steps as numbers, for methods that learn."""
        return step_features(self.case)

    @cached_property
    def requests(self) -> Float64:
        """float64 [requests, numbers]: its requests as numbers, as :func:`request_numbers` has them."""
        return request_numbers(self.capture)


def _positions(asked: Mask | None, count: int) -> Int64:
    return np.arange(count) if asked is None else np.flatnonzero(asked)


def blinded(capture: Capture, asked: Mask | None = None, asked_steps: Mask | None = None) -> Seen:
    """``capture`` as methods see it: names of files, of the capture and its id say nothing."""
    files = [file._replace(name=f"file-{at}") for at, file in enumerate(capture.files)]
    return Seen(replace(capture, id="capture", name="capture", files=files), asked, asked_steps)
