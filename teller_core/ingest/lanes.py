"""The lanes of a process and of its devices, as profilers fill them."""

from enum import IntEnum


class Place(IntEnum):
    """Which lane of its process or device an event belongs on."""

    THREAD = 0
    STREAM = 1
    ANNOTATIONS = 2
    SYNCS = 3


SUFFIX = {Place.STREAM: "", Place.ANNOTATIONS: " annotations", Place.SYNCS: " syncs"}
"""What the name of a stream's lane ends with. The stream's own lane holds device work and nothing else."""
