"""What the command line asks of the core, and where captures are kept."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teller_core.errors import InputError

if TYPE_CHECKING:
    from teller_core.data.report import (
        CapturesReport,
        CompareReport,
        ImportReport,
        SliceReport,
        SlowReport,
        WhyReport,
    )
    from teller_core.data.report_fleet import FleetReport
    from teller_core.data.report_learned import LearnReport
    from teller_core.data.report_operators import OperatorReport
    from teller_core.data.report_search import SearchReport
    from teller_core.data.report_tokens import TokensReport
    from teller_core.data.report_what_if import WhatIfReport
    from teller_core.model.loading import Loader
    from teller_core.timelines import Illustrated


@dataclass(frozen=True)
class Verbs:
    """What both mouths of TELLER, this one and the MCP server, ask of the core. Each raises TellerError."""

    open_store: Callable[[Path, bool, float | None], AbstractContextManager[Any]]
    """The store at a path; whether it is only read, and then must be there; and after how many seconds it refuses."""
    import_paths: "Callable[..., ImportReport]"
    list_captures: "Callable[..., CapturesReport]"
    search: "Callable[..., SearchReport]"
    slow: "Callable[..., SlowReport]"
    fleet: "Callable[..., FleetReport]"
    why: "Callable[..., WhyReport]"
    causal_slice: "Callable[..., SliceReport]"
    tokens: "Callable[..., TokensReport]"
    explain_operator: "Callable[..., OperatorReport]"
    compare: "Callable[..., CompareReport]"
    what_if: "Callable[..., WhatIfReport]"
    learn: "Callable[..., LearnReport]"
    learned: "Callable[..., LearnReport]"
    forget: "Callable[..., LearnReport]"
    refine: "Callable[..., WhyReport]"
    """What ``why`` said, with the model of a loader asked as well."""
    illustrated: "Callable[..., Illustrated]"
    """An answer of ``why`` with what stands beside it on a page: its timeline and its slice."""
    as_chrome: Callable[..., tuple[Iterator[str], int]]


def pipeline_verbs() -> Verbs:
    """The verbs of the core. Loading them takes a moment: call this when the first answer is wanted."""
    from teller_core import answers, search, slices, timelines
    from teller_core.store.store import Store

    return Verbs(
        open_store=lambda path, read_only, deadline: Store.open(path, read_only=read_only, deadline_s=deadline),
        import_paths=_read_into,
        list_captures=answers.list_captures,
        search=search.search,
        slow=answers.slow,
        fleet=_fleet,
        why=answers.why,
        causal_slice=slices.causal_slice,
        tokens=slices.tokens,
        explain_operator=answers.explain_operator,
        compare=answers.compare,
        what_if=_what_if,
        learn=_learn,
        learned=_learned,
        forget=_forget,
        refine=_refine,
        illustrated=timelines.illustrated,
        as_chrome=timelines.as_chrome,
    )


def _read_into(paths: Sequence[Path], store: Any, **how: Any) -> "ImportReport":
    from teller_core.pipeline import import_paths

    return import_paths(paths, store, **how)


def _fleet(store: Any, **how: Any) -> "FleetReport":
    from teller_core.fleet import fleet

    return fleet(store, **how)


def _what_if(store: Any, request: str, texts: Sequence[str], **how: Any) -> "WhatIfReport":
    from teller_core.what_if import what_if

    return what_if(store, request, texts, **how)


def _learn(store: Any, captures: Sequence[str], **how: Any) -> "LearnReport":
    from teller_core.learning import learn

    return learn(store, captures, **how)


def _learned(store: Any) -> "LearnReport":
    from teller_core.learning import learned

    return learned(store)


def _forget(store: Any, name: str) -> "LearnReport":
    from teller_core.learning import forget

    return forget(store, name)


def _refine(store: Any, report: "WhyReport", loader: "Loader", **how: Any) -> "WhyReport":
    from teller_core.refining import refine

    return refine(store, report, loader, **how)


def data_folder(environment: Mapping[str, str]) -> Path:
    """TELLER's folder in the user's data folder, whether it is there or not."""
    return Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "teller"


def store_path(named: Path | None, environment: Mapping[str, str]) -> Path:
    """The database to use: ``named``, else TELLER_DB, else one in the user's data folder, which is made for its user alone."""
    if named is not None:
        return named
    if environment.get("TELLER_DB"):
        return Path(environment["TELLER_DB"])
    folder = data_folder(environment)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        why = f"its folder cannot be made ({error.strerror})"
        raise InputError("the default database", why, "Name another one with --db FILE") from None
    return folder / "teller.db"
