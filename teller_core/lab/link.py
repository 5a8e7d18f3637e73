"""Two network namespaces and a link between them whose delay, jitter, loss and rate can be changed while it is used.

For kernels without netem: packets leave one TUN device, wait in this module's process, and enter the other one, in order.
It needs root, ``ip`` and ``/dev/net/tun``. Nothing outside of the two namespaces is touched.
"""

import fcntl
import json
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import IO, NamedTuple

from teller_core.errors import InputError
from teller_core.lab.spaces import inside

DEVICE = "tl0"
ADDRESSES = ("10.77.0.1", "10.77.0.2")
MTU = 9000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
"""linux/if_tun.h."""
MOST_WAITING = 20_000
"""Packets on the way; more are dropped, as a router's queue would."""


@dataclass(frozen=True)
class Conditions:
    """What the link does to each packet, in both directions alike."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss_percent: float = 0.0
    rate_mbit: float = 0.0
    """0 for no limit."""


class Change(NamedTuple):
    """The link was changed at ``time`` (Unix ns)."""

    time: int
    conditions: Conditions


@dataclass
class Link:
    """A link that is up. ``changes`` is the truth of what it did when."""

    spaces: tuple[str, str]
    process: subprocess.Popen[str]
    changes: list[Change] = field(default_factory=list[Change])

    def command(self, side: int, words: Sequence[str]) -> list[str]:
        """``words`` as a command inside the namespace of ``side``, 0 or 1."""
        return ["ip", "netns", "exec", self.spaces[side], *words]

    def set(self, conditions: Conditions) -> None:
        """Change what the link does, from now on."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asdict(conditions)) + "\n")
        self.process.stdin.flush()
        self.changes.append(Change(time.time_ns(), conditions))

    @contextmanager
    def during(self, conditions: Conditions) -> Generator[int]:
        """Let the link do so until the block is left, then nothing to a packet. Yields when it began (Unix ns)."""
        self.set(conditions)
        try:
            yield self.changes[-1].time
        finally:
            self.set(Conditions())


def missing() -> str:
    """Why there can be no link here, empty where there can."""
    if os.geteuid() != 0:
        return "it needs root"
    if shutil.which("ip") is None:
        return "it needs iproute2's ip"
    return "" if os.access("/dev/net/tun", os.R_OK | os.W_OK) else "it needs /dev/net/tun"


@contextmanager
def linked(conditions: Conditions | None = None) -> Generator[Link]:
    """Two new namespaces with ADDRESSES on a link, removed on leaving. Raises InputError where there can be none."""
    if why := missing():
        raise InputError("The link", why, "Run it on Linux as root")
    spaces = (f"teller-{os.getpid()}-a", f"teller-{os.getpid()}-b")
    try:
        for space in spaces:
            _ip("netns", "add", space)
        process = subprocess.Popen(
            [sys.executable, "-m", "teller_core.lab.link", *spaces],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None and process.stdin is not None
            if process.stdout.readline() != "up\n":
                raise InputError("The link", "its devices cannot be made", "Check that the kernel has TUN devices")
            for space, address in zip(spaces, ADDRESSES, strict=True):
                _ip("-n", space, "link", "set", "lo", "up")
                _ip("-n", space, "addr", "add", f"{address}/24", "dev", DEVICE)
                _ip("-n", space, "link", "set", DEVICE, "up", "mtu", str(MTU))
            link = Link(spaces, process)
            link.set(conditions or Conditions())
            yield link
        finally:
            with suppress(OSError):
                process.stdin.close()  # pyright: ignore[reportOptionalMemberAccess]  # a pipe was asked for
            process.kill()
            process.wait()
            process.stdout.close()  # pyright: ignore[reportOptionalMemberAccess]
    finally:
        for space in spaces:
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL, check=False)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, check=False)
    if done.returncode:
        raise InputError("The link", "the system refuses it a network namespace", "Run it where root may make one")


def main(spaces: Sequence[str]) -> int:
    """Carry packets between ``spaces`` until standard input ends; each of its lines holds new conditions."""
    ends = [_device_in(space) for space in spaces]
    told = [Conditions()]
    for source, target in (ends, ends[::-1]):
        threading.Thread(target=_carry, args=(source, target, told), daemon=True).start()
    sys.stdout.write("up\n")
    sys.stdout.flush()
    _listen(sys.stdin, told)
    return 0


def _listen(lines: IO[str], told: list[Conditions]) -> None:
    for line in lines:
        told[0] = Conditions(**json.loads(line))


def _device_in(space: str) -> int:
    """A TUN device in the namespace ``space``; the process itself stays where it is."""
    with inside(space):
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
        return device


def _carry(source: int, target: int, told: list[Conditions]) -> None:
    """Carry packets one way, each when it is due. In order: a packet never overtakes, as on one wire."""
    waiting: deque[tuple[float, bytes]] = deque()
    free = 0.0
    while True:
        due = waiting[0][0] - time.monotonic() if waiting else 1.0
        if select.select([source], [], [], max(due, 0.0))[0]:  # in microseconds, where poll counts milliseconds
            free = _take(source, waiting, free, told[0])
        while waiting and waiting[0][0] <= time.monotonic():
            with suppress(OSError):  # the device is down, or full: the packet is lost, as on a wire
                os.write(target, waiting.popleft()[1])


def _take(source: int, waiting: deque[tuple[float, bytes]], free: float, now: Conditions) -> float:
    """Read what has come, with the moment at which each packet is due. Returns when the wire is free again."""
    while True:
        try:
            packet = os.read(source, 65_600)
        except OSError:
            return free
        lost = random.random() * 100 < now.loss_percent or len(waiting) > MOST_WAITING  # chance, no secret
        if lost:
            continue
        at = time.monotonic()
        if now.rate_mbit:
            free = at = max(free, at) + len(packet) * 8 / (now.rate_mbit * 1e6)
        at += max(0.0, now.delay_ms + random.uniform(-1, 1) * now.jitter_ms) / 1e3
        waiting.append((max(at, waiting[-1][0] if waiting else 0.0), packet))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
