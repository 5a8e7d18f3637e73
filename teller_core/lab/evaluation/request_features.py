"""The requests of a capture as numbers, for methods that learn (see :mod:`teller_core.judge.request_numbers`)."""

from dataclasses import dataclass

from teller_core.data.capture import Capture
from teller_core.data.table import Float64
from teller_core.judge.request_numbers import request_numbers


@dataclass(frozen=True)
class RequestFeatures:
    """``value`` float64 [requests, NAMES], NaN for what nobody recorded: times as the log over the capture's median."""

    value: Float64


def request_features(capture: Capture) -> RequestFeatures:
    """What was recorded of every request."""
    return RequestFeatures(request_numbers(capture))
