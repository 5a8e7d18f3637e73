"""The tokens of one step on one rank: what is suspected, and what takes a share that can be felt, is a token of its own."""

from teller_core.context.tpe.columns import self_times
from teller_core.context.tpe.guard import opened
from teller_core.context.tpe.structural import encode
from teller_core.context.tpe.vocabulary import Vocabulary
from teller_core.data.linked import StepSpans
from teller_core.data.table import Int32, Mask
from teller_core.data.tokens import Encoded


def step_tokens(spans: StepSpans, suspects: Int32, vocabulary: Vocabulary) -> tuple[Encoded, Mask]:
    """The tokens of ``spans``, whose row 0 is row ``spans.first`` of the rank's tree; and, bool a row: it was kept apart.
    ``suspects``: rows of the rank's tree.
    """
    tree, first = spans.tree, spans.first
    alone = opened(tree, self_times(tree))
    mine = suspects - first
    alone[mine[(mine >= 0) & (mine < len(tree))]] = True
    return encode(tree, vocabulary, alone), alone
