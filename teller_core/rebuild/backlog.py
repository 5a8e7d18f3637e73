"""Device work without its launch: queued before recording began, or launched by a call that was not recorded."""

import numpy as np

from teller_core.data.trace import NO_LINK, Layer
from teller_core.data.tree import ROOT, Tree


def without_launch(tree: Tree) -> dict[str, int]:
    """How much device work of ``tree`` hangs under no call, by the problem's name; none where all of it does.

    Drivers count correlation ids upwards from the start of the process: work whose id is below that of every recorded call
    was queued before the window, and its launch is not lost but earlier. Where no call was recorded nobody can tell.
    """
    if not tree.unlaunched:
        return {}
    trace = tree.trace
    device = trace.on_device
    calls = trace.link[~device & (trace.layer == Layer.RUNTIME) & (trace.link != NO_LINK)]
    work = device & (tree.parent == ROOT) & ((trace.layer == Layer.KERNEL) | (trace.layer == Layer.COMMUNICATION))
    link = trace.link[work]
    first = int(calls.min()) if len(calls) else NO_LINK
    queued = int(np.count_nonzero((link != NO_LINK) & (link < first)))
    counts = {"device_work_without_launch": len(link) - queued, "queued_before_the_window": queued}
    return {name: count for name, count in counts.items() if count}
