"""Hook points inside a service, where something may be done to it while it runs. The folder that is named says what and when.

``control`` (JSON, replaced whole) says what is done: ``act``, ``role``, ``point``, knobs, on which ``rank`` where it is one
alone, and from when until when (Unix ns; 0: not known yet). ``limits`` (JSON) lowers limits of the scheduler for as long as it
stands there. ``log`` gets what was done, one line each, begun with the pid: ``is ROLE THREAD``, ``on NS``, ``off NS``,
``did START STOP``, ``limited NAME``. Nothing is written while something is done: a write would be seen in the process's counters.
"""

import ctypes
import gc
import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import teller_shim_imports  # pyright: ignore[reportMissingImports]  # the recorder's folder is on the path there

POLL_S = 0.02
BLOCK = 64 * 1024
BLOCKS = 64
BATCHING = "transformers.generation.continuous_batching.continuous_api"
PLACES = (
    ("vllm.v1.worker.gpu_worker", "Worker", "execute_model", "step"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "schedule", "schedule"),
    ("vllm.v1.engine.detokenizer", "BaseIncrementalDetokenizer", "update", "detokenize"),
    ("vllm.model_executor.models.llama", "LlamaMLP", "forward", "operator"),
    (BATCHING, "ContinuousBatchProcessor", "_generation_step", "step"),
    (BATCHING, "ContinuousBatchProcessor", "prepare_next_batch", "schedule"),
    ("transformers.cli.serving.utils", "CBStreamer", "put", "detokenize"),
    ("transformers.models.llama.modeling_llama", "LlamaMLP", "forward", "operator"),
    ("transformers.tokenization_utils_base", "PreTrainedTokenizerBase", "__call__", "tokenize"),
)
"""Module, class and function of each point. Tested on vLLM 0.32 and transformers 5.24."""
ROLES = {"step": "worker", "schedule": "engine", "detokenize": "front_end"}
LIMITS = {
    "chunk": ("max_num_scheduled_tokens", "max_batch_tokens"),
    "seats": ("max_num_running_reqs", "max_num_active_reqs"),
}
"""What holds a limit of the scheduler: those of these that it has. Tokens of a step: of vLLM, and of transformers; requests:
those that vLLM has in a step, and those that it lets in.
"""


def install(folder: str) -> None:
    """Make this process one to which something may be done, whatever process of the service it will be."""
    points = Points(Path(folder))
    for module, owner, name, point in PLACES:
        hook = partial(_wrap, points, owner, name, point)
        teller_shim_imports.when_imported(module, hook)  # pyright: ignore[reportUnknownMemberType]
    points.start()
    os.register_at_fork(after_in_child=points.start)


def _wrap(points: "Points", owner: str, name: str, point: str, module: Any) -> None:
    kind = getattr(module, owner)
    ordinary = getattr(kind, name)

    @wraps(ordinary)
    def wrapped(*args: Any, **named: Any) -> Any:
        return points.call(point, ordinary, args, named)

    setattr(kind, name, wrapped)


def _newest(path: Path, known: dict[str, Any], read: tuple[int, int]) -> tuple[dict[str, Any], tuple[int, int]]:
    """What the file says and when it was written, where that was not ``read`` before; what is ``known`` where it cannot be."""
    try:
        found = os.stat(path)
        written = (found.st_mtime_ns, found.st_ino)
        return (known, read) if written == read else (json.loads(path.read_text()), written)
    except (OSError, ValueError):
        return known, read


class Points:
    """What is done in this process now, and what was done."""

    def __init__(self, folder: Path) -> None:
        self._control, self._limits = folder / "control", folder / "limits"
        self._log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._read: tuple[int, int] = (0, 0)
        self._given: dict[str, Any] = {}
        self.doing: dict[str, Any] = {}
        self._lines: list[str] = []
        self._seen: set[str] = set()
        self._layers: dict[int, int] = {}
        self._heap: list[Any] = []
        self._file = -1
        self._next = 0
        self._rank = 0
        self._before = 0
        self._limits_read: tuple[int, int] = (0, 0)
        self._lower: dict[str, int] = {}
        self._lowered: dict[str, int] = {}
        self._own: dict[str, int] = {}

    def start(self) -> None:
        """Begin to watch the control file, in a thread of this process."""
        self._lines.clear()  # of the process that this one was forked from
        self._seen.clear()
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def call(self, point: str, ordinary: Callable[..., Any], args: Any, named: Any) -> Any:
        """Call what stands at ``point``, with what is done there before or around it."""
        if point not in self._seen:
            if point == "step":
                self._rank = getattr(args[0], "rank", 0)
            self._seen.add(point)
            if point in ROLES:
                numbered = f"_{self._rank}" if self._rank else ""
                self._say(f"is {ROLES[point]}{numbered} {threading.get_native_id()}")
        layer = self._layers.setdefault(id(args[0]), len(self._layers)) if point == "operator" else 0
        if point == "schedule" and self._lowered != self._lower:
            self._limit(args[0])
        doing = self.doing
        if self._before and point == "step" and doing.get("act") != "threads":
            sys.modules["torch"].set_num_threads(self._before)
            self._before = 0
        if doing.get("point") != point or doing.get("layer", layer) != layer or not self._is_mine(doing):
            return ordinary(*args, **named)
        act = doing["act"]
        start = time.time_ns()
        if act == "trace":
            return self._traced(doing, ordinary, args, named)
        if act == "repeat":
            for _ in range(doing["times"]):
                ordinary(*args, **named)
        else:
            getattr(self, f"_{act}")(doing)
        self._did(start, time.time_ns())
        return ordinary(*args, **named)

    def turn(self, now: int) -> None:
        """Look at the control file, and begin or end what it says; and at the limits."""
        self._lower, self._limits_read = _newest(self._limits, self._lower, self._limits_read)
        self._given, self._read = _newest(self._control, self._given, self._read)
        given = self._given
        until = given.get("until", 0)
        over = not given or bool(until and now >= until)
        if given.get("act") == "collect" and not over and self._is_for(given) and not self._heap:
            self._fill(given["objects"])
        if not over and now >= given["from"] and self.doing != given:
            if not self.doing:
                self._say(f"on {time.time_ns() if self._heap else now}")  # to fill it takes a while
                self._write_down()
            self.doing = given
        elif over and self.doing:
            self.doing = {}
            self._say(f"off {now}")
        if over and self._heap:
            self._empty()
        if not self.doing and self._lines:
            self._write_down()

    def _limit(self, scheduler: Any) -> None:
        """Give ``scheduler`` the limits that are asked for, and its own back where none is. One is lowered only: what the engine
        has made ready is of its own size.
        """
        wanted = self._lower
        for name, places in LIMITS.items():
            for place in places:
                if hasattr(scheduler, place):
                    own = self._own.setdefault(place, getattr(scheduler, place))
                    setattr(scheduler, place, min(own, wanted.get(name, own)))
                    if wanted.get(name, own) < own:
                        self._say(f"limited {name}")
        self._lowered = wanted

    def _write_down(self) -> None:
        lines, self._lines = self._lines, []
        os.write(self._log, "".join(f"{os.getpid()} {line}\n" for line in lines).encode())

    def pulse(self, now: int) -> None:
        """What comes again and again, in a thread of its own."""
        doing = self.doing
        if doing.get("act") not in ("collect", "hold") or not self._is_for(doing) or now < self._next:
            return
        if doing["act"] == "collect":
            gc.collect()
        else:
            ctypes.PyDLL(None).usleep(int(doing["ms"] * 1000))  # called so, it keeps the interpreter lock
        done = time.time_ns()
        self._did(now, done)
        self._next = done + int(doing["every_s"] * random.uniform(0.8, 1.2) * 1e9)

    def _watch(self) -> None:
        while True:
            time.sleep(POLL_S)
            self.turn(time.time_ns())
            self.pulse(time.time_ns())

    def _is_for(self, given: dict[str, Any]) -> bool:
        return given.get("role") in {ROLES.get(point) for point in tuple(self._seen)} and self._is_mine(given)

    def _is_mine(self, given: dict[str, Any]) -> bool:
        return given.get("rank") in (None, self._rank)

    def _say(self, line: str) -> None:
        self._lines.append(line)

    def _did(self, start: int, stop: int) -> None:
        self._lines.append(f"did {start} {stop}")

    def _wait(self, doing: dict[str, Any]) -> None:
        time.sleep(doing["ms"] / 1e3)

    def _busy(self, doing: dict[str, Any]) -> None:
        until = time.perf_counter_ns() + int(doing["ms"] * 1e6)
        while time.perf_counter_ns() < until:
            sum(range(200))

    def _write(self, doing: dict[str, Any]) -> None:
        """Write down and force to the disk until it has taken as long as it should."""
        if self._file < 0:
            path = doing["file"] + str(os.getpid())
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT)
            os.unlink(path)
        until = time.perf_counter_ns() + int(doing["ms"] * 1e6)
        turn = 0
        while True:
            os.pwrite(self._file, bytes(BLOCK), turn % BLOCKS * BLOCK)
            os.fsync(self._file)
            turn += 1
            if time.perf_counter_ns() >= until:
                return

    def _threads(self, doing: dict[str, Any]) -> None:
        torch = sys.modules["torch"]
        wanted = int(doing["threads_each_processor"]) * len(os.sched_getaffinity(0))
        if torch.get_num_threads() != wanted:
            self._before = self._before or torch.get_num_threads()
            torch.set_num_threads(wanted)

    def _sync(self, doing: dict[str, Any]) -> None:
        for _ in range(doing["times"]):
            sys.modules["torch"].cuda.synchronize()

    def _traced(self, doing: dict[str, Any], ordinary: Callable[..., Any], args: Any, named: Any) -> Any:
        """A tracer that does a little at every call of Python; what it took is what was done."""
        work, begun, took = range(int(doing["work"])), time.time_ns(), 0

        def look(*_event: Any) -> None:
            nonlocal took
            start = time.perf_counter_ns()
            for _ in work:
                pass
            took += time.perf_counter_ns() - start

        before = sys.getprofile()
        sys.setprofile(look)
        try:
            return ordinary(*args, **named)
        finally:
            sys.setprofile(before)
            self._did(begun, begun + took)

    def _fill(self, objects: int) -> None:
        """Objects that a full collection must visit."""
        gc.disable()
        self._heap.extend([number, [number]] for number in range(int(objects)))
        gc.enable()

    def _empty(self) -> None:
        """Let go of them, in parts: all at once, the interpreter would stand still for as long."""
        while self._heap:
            del self._heap[-2000:]
            time.sleep(0)
