"""The verbs that read captures and answer, and the demo."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from teller_core.calls.arguments import option
from teller_core.calls.serving import again
from teller_core.cli import written
from teller_core.cli.speech import say, show, style
from teller_core.cli.verbs import Verbs, store_path
from teller_core.tell.progress import shown_on

if TYPE_CHECKING:
    from teller_core.data.report import Model


def _answer(
    given: argparse.Namespace,
    verbs: Callable[[], Verbs],
    ask: "Callable[[Verbs, Any], Model]",
    *,
    read_only: bool = True,
) -> int:
    """Open the store, ask, print."""
    show(given, _asked(given, verbs, ask, read_only=read_only))
    return 0


def _asked(
    given: argparse.Namespace,
    verbs: Callable[[], Verbs],
    ask: "Callable[[Verbs, Any], Model]",
    *,
    read_only: bool,
) -> "Model":
    # The path first: a wrong one is told at once.
    path = store_path(option(given, "db"), os.environ)
    loaded = verbs()
    with loaded.open_store(path, read_only, None) as store:
        return ask(loaded, store)


def _import(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    together = True if given.together else False if given.apart else None
    how = {"together": together, "keep_prompts": given.keep_prompts, "jobs": given.jobs}
    with shown_on(sys.stderr) as progress:
        report = _asked(
            given,
            verbs,
            lambda loaded, store: loaded.import_paths(given.paths, store, **how, progress=progress),
            read_only=False,
        )
    show(given, report)  # after the bar is gone: they share a terminal
    return 0


def _captures(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    # Nobody who asks what there is has made a mistake: a store that is not there yet is made, and is empty.
    there = store_path(option(given, "db"), os.environ).exists()
    return _answer(given, verbs, lambda loaded, store: loaded.list_captures(store), read_only=there)


def _formats(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    from teller_core.ingest.catalog import formats

    show(given, formats())
    return 0


def _slow(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(
        given,
        verbs,
        lambda loaded, store: loaded.slow(
            store,
            capture=given.capture,
            metric=given.metric,
            slo_ms=given.slo_ms,
            limit=given.limit,
            cursor=given.cursor,
            view=given.view,
        ),
    )


def _search(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    how = {"capture": given.capture, "kind": given.kind, "limit": given.limit, "cursor": given.cursor}
    return _answer(given, verbs, lambda loaded, store: loaded.search(store, " ".join(given.text), **how))


def _fleet(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(
        given,
        verbs,
        lambda loaded, store: loaded.fleet(store, since=given.since, until=given.until, service=given.service),
    )


def _why(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(given, verbs, lambda loaded, store: written.why(loaded, store, given))


def _slice(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    target = " ".join(given.target)
    if given.chrome:
        return _answer(given, verbs, lambda loaded, store: written.trace(loaded, store, target, given))
    if given.raw:
        return _answer(
            given, verbs, lambda loaded, store: loaded.tokens(store, target, capture=given.capture, rank=given.rank)
        )
    return _answer(
        given,
        verbs,
        lambda loaded, store: loaded.causal_slice(
            store, target, capture=given.capture, rank=given.rank, budget=given.budget, nodes=given.nodes
        ),
    )


def _report(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(given, verbs, lambda loaded, store: written.page(loaded, store, given))


def _explain(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(
        given, verbs, lambda loaded, store: loaded.explain_operator(store, given.name, capture=given.capture)
    )


def _compare(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(
        given,
        verbs,
        lambda loaded, store: loaded.compare(store, given.before, given.after, capture=given.capture),
    )


def _what_if(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    return _answer(
        given,
        verbs,
        lambda loaded, store: loaded.what_if(
            store, given.request, given.supposed, capture=given.capture, metric=given.metric
        ),
    )


def _serve(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    # The server stands above the core, which therefore does not import it: this process becomes it.
    named = option(given, "db")
    command = [sys.executable, "-m", "teller_mcp", *(["--db", str(named)] if named else []), *again(given)]
    os.execv(sys.executable, command)


def _demo(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    from teller_core.lab import conversation

    with shown_on(sys.stderr) as progress:

        def told(text: str) -> None:
            progress(text, 0, 0)

        if not option(given, "json"):
            conversation.demo(given.seed, given.fault, given.keep, style=style(), say=say, progress=told)
            return 0
        report = conversation.headless(given.seed, given.fault, given.keep, verbs=verbs(), progress=told)
    show(given, report)
    return 0


VERBS: Mapping[str, Callable[..., int]] = {
    "import": _import,
    "captures": _captures,
    "formats": _formats,
    "search": _search,
    "slow": _slow,
    "fleet": _fleet,
    "why": _why,
    "report": _report,
    "slice": _slice,
    "explain-op": _explain,
    "compare": _compare,
    "what-if": _what_if,
    "serve": _serve,
    "demo": _demo,
}
