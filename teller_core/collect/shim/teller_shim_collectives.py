"""Which collectives this process calls, and when: torch's own functions on groups whose backend is Gloo.

A call on a Gloo group lasts, on the calling thread, as long as the collective, so calls of all ranks tell who came last,
without a profiler. NCCL's calls return before the device begins: those are left to its own recorders. One that lasts
unusually long makes torch's flight recorder write what it holds, where TORCH_FR_BUFFER_SIZE made it hold anything; so does
an unusually long time without any, which is what the rank that the others wait for sees, and the end of the process. The last
such dump of a process is kept.

``K`` events: ``name`` the function, ``dur``, ``group``, ``n`` (counts the collectives of the group here), ``rank`` in the job,
``size`` of the group, ``elems`` and ``dtype`` of what is given, ``later`` where the call only began it, ``root`` the rank in the
job from which all get or to which all give.
"""

import functools
import os
import sys
import threading
import time
import weakref
from collections import Counter

from teller_shim_cost import due, spent, timed
from teller_shim_events import add, instant
from teller_shim_guard import guarded
from teller_shim_imports import known_library, when_imported

TESTED = ("2.13",)
"""Of torch."""
LONG_S = 10.0
"""Gloo itself gives up after 30 minutes, and orchestrators after one or more."""
CALLS = {
    "all_reduce": (0, 2),
    "broadcast": (0, 2),
    "reduce": (0, 3),
    "all_gather": (1, 2),
    "all_gather_single": (1, 2),
    "gather": (0, 3),
    "scatter": (0, 3),
    "reduce_scatter": (0, 3),
    "reduce_scatter_single": (1, 3),
    "all_to_all": (None, 2),
    "all_to_all_single": (1, 4),
    "barrier": (None, 0),
}
"""Functions of torch.distributed, with the places of the tensor and of the group among their arguments. What has an
older name besides (``all_gather_into_tensor``, ``reduce_scatter_tensor``) calls the one that is here.
"""
ROOTS = {"broadcast": (1, "src"), "reduce": (1, "dst"), "gather": (2, "dst"), "scatter": (2, "src")}
"""Those with a root, with the place and the name of that argument. Newer ones also take its place in the group."""
UNNAMED = {"gather": 0, "scatter": 0}
"""Their root where the call names none, a rank in the job (gather() and scatter() of torch/distributed/distributed_c10d.py)."""
_numbers = Counter()
_groups, _types = {}, {}
_open = {}
_told = {"hang": None, "rank": None, "last": 0, "idle": 0, "dump": None}
_MARK = "__teller_shim__"


def install():
    """Record the collectives of this process once it imports torch.distributed."""
    when_imported("torch.distributed.distributed_c10d", _wrap)


def after_fork():
    """A child has called nothing yet."""
    _numbers.clear()
    _open.clear()
    _told.update(hang=None, rank=None, last=0, idle=0, dump=None)


def watch(folder):
    """Where a call has lasted for LONG_S, or none was made for as long, have the flight recorder write what it knows; once."""
    late = time.time_ns() - int(LONG_S * 1e9)
    for call in list(_open.values()):
        if call[0] < late and _told["hang"] != call:
            _told["hang"] = call
            instant("collective_hangs", call=call[1], group=call[2], n=call[3])
            dump(folder)
    if _told["last"] and not _open and _told["last"] < late and _told["idle"] != _told["last"]:
        _told["idle"] = _told["last"]
        dump(folder)


def finish(folder):
    """Have the flight recorder write what it knows, before the process ends."""
    if _numbers:
        dump(folder)


def dump(folder):
    """Write ``fr-PID-TIME.json``, where torch has a flight recorder that holds anything."""
    write = getattr(sys.modules.get("torch._C._distributed_c10d"), "_dump_fr_trace_json", None)
    if write is None:
        return
    text = write(includeCollectives=True, onlyActive=False)
    if b'"profiling_name"' not in text or not text.startswith(b"{"):
        return
    if _told["rank"] is not None:
        text = b'{"rank": %d,' % _told["rank"] + text[1:]
    name = "fr-%d-%d.json" % (os.getpid(), time.time_ns())
    hidden, path = os.path.join(folder, "." + name), os.path.join(folder, name)
    with open(hidden, "wb") as file:
        file.write(text)
    os.replace(hidden, path)
    before, _told["dump"] = _told["dump"], path
    if before is not None:
        os.unlink(before)


def _wrap(module):
    if not known_library("torch", TESTED):
        return
    for name, (tensor, group) in CALLS.items():
        function = getattr(module, name, None)
        if function is not None and not getattr(function, _MARK, False):
            setattr(module, name, _recorded(module, function, name, tensor, group))


def _recorded(module, function, name, tensor, group):
    @functools.wraps(function)
    def recorded(*args, **kwargs):
        cpu = due()
        call = guarded("collectives", _begin, module, name, _argument(args, kwargs, group, "group"))
        spent(cpu)
        if call is None:
            return function(*args, **kwargs)
        thread = threading.get_ident()
        _open[thread] = call
        result = None
        try:
            result = function(*args, **kwargs)
        finally:
            took = time.time_ns() - call[0]
            _open.pop(thread, None)
            cpu = None if cpu is None else time.thread_time_ns()
            root = guarded("collectives", _root, module, name, args, kwargs)
            guarded("collectives", _end, call, took, _argument(args, kwargs, tensor, "tensor"), result, root)
            if cpu is not None:
                spent(cpu)
                timed()
        return result

    setattr(recorded, _MARK, True)
    return recorded


def _argument(args, kwargs, place, name):
    if place is None:
        return None
    return args[place] if len(args) > place else kwargs.get(name)


def _root(module, name, args, kwargs):
    """The rank in the job of the root, None where the call has none."""
    place, word = ROOTS.get(name, (None, ""))
    root, of_group = _argument(args, kwargs, place, word), kwargs.get("group_" + word)
    if root is None and of_group is not None:
        group = _argument(args, kwargs, CALLS[name][1], "group")
        root = module.get_global_rank(group or module._get_default_group(), of_group)
    elif root is None:
        root = UNNAMED.get(name)
    return root if isinstance(root, int) else None


def _begin(module, name, group):
    """(start, name, group, number, rank, size) of a call on a Gloo group, else None."""
    group = group or module._get_default_group()
    known = _groups.get(id(group))
    if known is None or known[0]() is not group:
        if not hasattr(group, "group_name"):  # this rank is not in the group
            return None
        known = _groups[id(group)] = _described(module, group)
    _, called, size, rank = known
    if not size:
        return None
    number = _numbers[called]
    _numbers[called] = number + 1
    return time.time_ns(), name, called, number, rank, size


def _described(module, group):
    """A reference that keeps nothing alive, name, size and this process' rank in the job; size 0 where it is not Gloo's."""
    backend, rank = str(module.get_backend(group)), module.get_rank()
    _told["rank"] = rank
    size = group.size() if "gloo" in backend and "nccl" not in backend else 0
    return weakref.ref(group), str(group.group_name), size, rank


def _end(call, took, tensor, result, root):
    start, name, group, number, rank, size = call
    _told["last"] = start + took
    fields = {"dur": took, "group": group, "n": number, "rank": rank, "size": size}
    if hasattr(tensor, "numel"):
        fields["elems"] = tensor.numel()
        kind = tensor.dtype
        if kind not in _types:
            _types[kind] = str(kind).replace("torch.", "")
        fields["dtype"] = _types[kind]
    if result is not None:
        fields["later"] = True
    if root is not None:
        fields["root"] = root
    add("K", start, name, fields)
