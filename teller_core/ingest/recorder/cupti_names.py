"""CUPTI's numbers in the words that PyTorch's profiler has for them."""

COPIES = ("Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
"""By CUpti_ActivityMemcpyKind."""
MEMORIES = ("Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static")
"""By CUpti_ActivityMemoryKind."""
SYNCS = ("Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")
"""By CUpti_ActivitySynchronizationType."""
OVERHEADS = {
    0: "Unknown",
    1: "Driver Compiler",
    1 << 16: "Buffer Flush",
    2 << 16: "Instrumentation",
    3 << 16: "Resource",
    4 << 16: "Runtime Triggered Module Loading",
    5 << 16: "Lazy Function Loading",
    6 << 16: "Command Buffer Full",
    7 << 16: "Activity Buffer Request",
    8 << 16: "UVM Activity Init",
}
"""By CUpti_ActivityOverheadKind."""


def copied(kind: int, source: int, target: int) -> str:
    """The name of a copy."""
    return f"Memcpy {_word(COPIES, kind)} ({_word(MEMORIES, source)} -> {_word(MEMORIES, target)})"


def filled(kind: int) -> str:
    """The name of memory set to a value."""
    return f"Memset ({_word(MEMORIES, kind)})"


def waited(kind: int) -> str:
    """The name of a synchronization."""
    return _word(SYNCS, kind)


def replayed(graph: int) -> str:
    """The name of a whole replay of a CUDA graph."""
    return f"CUDA graph {graph}"


def spent(kind: int) -> str:
    """The name of an overhead of the driver or of CUPTI itself."""
    return OVERHEADS.get(kind, "Unknown")


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else "Unknown"
