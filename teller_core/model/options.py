"""What a model is made of and how it is trained: plain numbers, so that a model card can say them."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Parts:
    """What the network reads. Each may be left out, to learn what it is worth.

    ``tokens``: the pieces of Trace Pair Encoding; ``parent``, ``depth``: their places in the tree; ``durations``: every time of a
    piece or a suspect; ``logs``: the aligned lines; ``numbers``: the groups of numbers; ``rules``: what each cause's rule says,
    and its facts; ``horizontal``: sheets that look across ranks.
    """

    tokens: bool = True
    parent: bool = True
    depth: bool = True
    durations: bool = True
    logs: bool = True
    numbers: bool = True
    rules: bool = True
    horizontal: bool = True


PARTS = tuple(field.name for field in fields(Parts))


OURS, TWO_STREAMS, ONE_STREAM = "ours", "two_streams", "one_stream"
PAPER = (TWO_STREAMS, ONE_STREAM)
"""The networks that the paper describes."""


@dataclass(frozen=True)
class Shape:
    """The decoder: ``hidden`` wide, ``layers`` deep, ``heads`` of ``head`` each, ``inner`` inside its feed-forward part; and
    ``kind``: what is built around it, OURS or one of PAPER.
    """

    hidden: int = 160
    layers: int = 6
    heads: int = 5
    head: int = 32
    inner: int = 416
    kind: str = OURS


@dataclass(frozen=True)
class Masks:
    """How often training hides what was recorded, as a share of sheets, or of groups within them.

    ``group``: a group of numbers; ``clue``: what one rule says; ``part``: all pieces, all suspects, all lines or all facts;
    ``cited``: a struck sheet loses all that its cause is told by, and the answer is that it cannot be told; ``other``: it
    loses as much that has nothing to do with it, and the answer stays; ``barred``: its cause is taken for one that training never
    saw, and the answer is that it cannot be told, though nothing is hidden; ``service``: the group of numbers that one service
    has for all of its sheets, by which a life could be known.
    """

    group: float = 0.08
    clue: float = 0.05
    part: float = 0.12
    cited: float = 0.12
    other: float = 0.12
    barred: float = 0.12
    service: float = 0.5


@dataclass(frozen=True)
class Plan:
    """One training. ``tokens``: positions of a batch; ``updates``: steps of the optimizer at most; ``minutes``: of the clock at
    most; ``patience``: looks at the validation side without anything better; ``look``: updates between two looks.
    """

    seed: int = 0
    tokens: int = 4096
    updates: int = 1800
    minutes: float = 36.0
    rate: float = 2e-3
    decay: float = 0.05
    warm: int = 60
    look: int = 100
    patience: int = 12
    save_s: float = 30.0
    threads: int = 2
    held: float = 0.2
    """Of the lives: kept from training, to choose by."""
    unseen: str = ""
    """A cause whose sheets are kept from training, to see what is said of a fault that nobody knows; empty for none."""
