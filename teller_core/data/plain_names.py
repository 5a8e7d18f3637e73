"""Names of spans without what differs from call to call: what places are made of."""

import re

from teller_core.data.trace import Layer

IDS = re.compile(r",? (?:op_id|seq) = \d+")
"""Numbers that emit_nvtx writes into names and that differ at every call."""
DIGITS = re.compile(r"\d+")
MODULE = "nn.Module"
"""Python frames with this prefix are modules of the model, which tell a place. Other frames are passed over."""
NUMBERED = (Layer.REQUEST, Layer.ENGINE, Layer.PYTHON, Layer.LOG)
"""Layers whose names count things (tokens, layers, lines of code) and are alike but for the numbers."""
NAME_LENGTH = 80
"""Characters of a name that stand in a place."""


def plain_name(name: str, layer: int) -> str:
    """``name`` without what differs from call to call: ids everywhere, numbers where the layer counts things."""
    name = IDS.sub("", name)
    return DIGITS.sub("#", name) if layer in NUMBERED else name


def is_frame(name: str, layer: int) -> bool:
    """Whether it is a Python function that is no module of the model."""
    return layer == Layer.PYTHON and not name.startswith(MODULE)
