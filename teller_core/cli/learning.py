"""The verb that learns what is usual for a service."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teller_core.calls.arguments import option
from teller_core.cli.speech import show
from teller_core.cli.verbs import Verbs, store_path
from teller_core.errors import InputError
from teller_core.tell.progress import shown_on

if TYPE_CHECKING:
    from teller_core.data.report_learned import LearnReport


def _learn(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    other = given.list or given.forget is not None
    if other and (given.captures or given.name is not None or given.healthy):
        raise InputError("learn", "it does one thing at a time", "Leave --list and --forget away, or everything else")
    if not other and not given.captures:
        raise InputError("learn", "no capture is named", "Name some in which all was well, as `captures` lists them")
    path, loaded = store_path(option(given, "db"), os.environ), verbs()
    with shown_on(sys.stderr) as progress, loaded.open_store(path, given.list and path.exists(), None) as store:
        report = _done(given, loaded, store, progress)
    show(given, report)  # after the bar is gone: they share a terminal
    return 0


def _done(given: argparse.Namespace, loaded: Verbs, store: Any, progress: Any) -> "LearnReport":
    if given.list:
        return loaded.learned(store)
    if given.forget is not None:
        return loaded.forget(store, given.forget)
    ids = [each for text in given.captures for each in _ids(text, loaded, store, progress)]
    return loaded.learn(store, ids, name=given.name, healthy=given.healthy, progress=progress)


def _ids(text: str, loaded: Verbs, store: Any, progress: Any) -> list[str]:
    """The captures that a word means: what lies there is imported first."""
    if not os.path.exists(text):  # a Path would fail at what is too long for a name
        return [text]
    return [each.id for each in loaded.import_paths([Path(text)], store, progress=progress).captures]


VERBS: Mapping[str, Callable[..., int]] = {"learn": _learn}
