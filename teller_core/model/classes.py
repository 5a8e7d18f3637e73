"""What the cause of a sheet may be: nothing, something that cannot be told, or a cause of the taxonomy."""

from teller_core.data.pooling import FIRST, NONE, UNTOLD
from teller_core.data.sheets import cause_ids

__all__ = ["FIRST", "NONE", "UNTOLD", "class_of", "classes", "key_of"]


def classes() -> int:
    """How many there are."""
    return FIRST + len(cause_ids())


def class_of(key: str) -> int:
    """The class of a cause of the taxonomy. Raises ValueError for one that is not there."""
    return FIRST + cause_ids().index(key)


def key_of(number: int) -> str:
    """The cause that a class is, empty for the two that are none."""
    return cause_ids()[number - FIRST] if number >= FIRST else ""
