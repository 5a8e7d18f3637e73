"""What the time of a request is parted into: by phase, and by resource inside its steps."""

PHASES = (
    "before_server",
    "front_end",
    "queue",
    "remote_kv_wait",
    "own_prefill",
    "between_own_chunks",
    "decode",
    "preempted",
    "recompute",
    "delivery",
    "capture_stall",
    "unexplained",
)
"""Disjoint in time; together the whole."""
RESOURCES = (
    "device_compute",
    "host_compute",
    "collective_transfer",
    "collective_wait",
    "exposed_host",
    "device_idle",
    "unexplained",
)
"""On the critical path of its profiled steps; together the whole."""
