"""What if: the answer to how much sooner a request would have ended had steps or spans taken another time."""

from teller_core.what_if.answer import what_if

__all__ = ["what_if"]
