"""The verbs about recording a running service."""

from collections.abc import Callable, Mapping

VERBS: Mapping[str, Callable[..., int]] = {}
