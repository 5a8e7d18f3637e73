"""Text that somebody else wrote, made safe to show."""


def visible(text: str) -> str:
    """``text`` with a blank for every character that does not show: control, escape, bidirectional and zero-width characters,
    line breaks, halves of surrogate pairs. They drive terminals, and hide text from people that models read.
    """
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)
