"""The signals that a recording hears. They are held back in all of its threads, so that only who waits for them gets them.

A thread that was started before would take them from it: one that ends the command would be lost, and any other ends the
recorder. numpy starts such threads where it is imported. So this is entered first, and imports next to nothing.
"""

import signal
from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import NamedTuple

WINDOW = signal.SIGUSR1
HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2)


class Held(NamedTuple):
    """``heard``: what is held back. ``mask``: what was before, as the command is to have it."""

    heard: set[signal.Signals]
    mask: set[int]


@contextmanager
def held(ignored: Collection[int]) -> Generator[Held]:
    """Hold back the signals that a recording hears. What comes and is not waited for until the end is dropped.

    ``ignored`` signals were so when we were started, as ``nohup`` does, and stay so.
    """
    before = {each: signal.signal(each, signal.SIG_IGN) for each in HANDED_ON if each in ignored}
    heard = {signal.SIGCHLD, WINDOW, *HANDED_ON} - before.keys()
    mask = {int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, heard)}
    ended = False
    try:
        yield Held(heard, mask)
        ended = True
    finally:
        quiet = heard - {signal.SIGCHLD} if ended else set[signal.Signals]()
        handlers = {each: signal.signal(each, signal.SIG_IGN) for each in quiet}
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for each, handler in (handlers | before).items():
            signal.signal(each, handler or signal.SIG_DFL)


def let_through(signals: Held) -> None:
    """Let what came so far do what it does without us: nothing runs yet that it could be handed on to."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.heard - signals.mask - {WINDOW})
    signal.pthread_sigmask(signal.SIG_BLOCK, signals.heard)
