"""A tree in, the slice that bears on a step out."""
