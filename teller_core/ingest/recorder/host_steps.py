"""What the recorder saw of an engine's steps: decisions, their outcomes, and what workers ran."""

from collections.abc import Mapping
from typing import Any, cast

from teller_core.data.records import Decision, Execution, Outcome, Process
from teller_core.ingest.decimals import count, few, scaled
from teller_core.ingest.found import Found
from teller_core.ingest.jsonl import as_list, as_object, text_of

Row = Mapping[str, Any]
PERCENT_OF_PERCENT = 10_000


def decision(found: Found, process: Process, row: Row, dur: int) -> Decision:
    """One choice of a scheduler. Problems: ``bad_token_count``."""
    return Decision(
        process,
        row["t"],
        dur,
        counts(found, row.get("tokens")),
        preempted=ids(row.get("preempted")),
        finished=ids(row.get("finished")),
        prompt=counts(found, row.get("prompt")),
        computed=_computed(found, row),
        cached=counts(found, row.get("cached")),
        resumed=ids(row.get("resumed")),
        output=ids(row["output"]) if isinstance(row.get("output"), list) else None,
        waiting=few(row.get("waiting")),
        number=count(row.get("n")),
        remote=counts(found, row.get("remote")),
        drafted=counts(found, row.get("drafted")),
        running=few(row.get("running")),
        kv_usage=_share(row.get("kv")),
        thread=count(row.get("tid")),
    )


def _computed(found: Found, row: Row) -> dict[str, int]:
    """By name, or as a list in the order of ``tokens``."""
    told: object = row.get("computed")
    if not isinstance(told, list):
        return counts(found, told)
    names, values = as_object(row.get("tokens")), as_list(row.get("computed"))
    if len(values) != len(names):
        found.problems["bad_token_count"] += len(names)
        return {}
    return counts(found, dict(zip(names, values, strict=True)))


def outcome(found: Found, process: Process, row: Row, dur: int) -> Outcome:
    """What came out of a step. Problems: ``bad_token_count``."""
    done = cast("dict[str, object]", row["done"] if isinstance(row.get("done"), dict) else {})
    return Outcome(
        process,
        row["t"],
        dur,
        count(row.get("n")),
        counts(found, row.get("got")),
        rejected=counts(found, row.get("rejected")),
        surplus=counts(found, row.get("surplus")),
        unused=counts(found, row.get("unused")),
        done={text_of(name): text_of(reason, 32) for name, reason in done.items()},
    )


def execution(found: Found, process: Process, row: Row, dur: int) -> Execution:
    """One run of a worker. Problems: ``bad_token_count``."""
    tokens = counts(found, row.get("tokens")) if isinstance(row.get("tokens"), dict) else None
    return Execution(process, row["t"], dur, tokens, count(row.get("n")), count(row.get("tid")))


def with_sampling(executions: list[Execution], row: Row, dur: int) -> bool:
    """Let the execution that a sampling belongs to end with it: a step is over when its tokens are there. False without one.

    A worker runs its steps in their order, so it is one of the last: where the sampling names none, the very last.
    """
    if "n" not in row and executions and executions[-1].start + executions[-1].dur <= row["t"]:
        ran = executions[-1]
        executions[-1] = ran._replace(dur=row["t"] + dur - ran.start)
        return True
    number = count(row.get("n"))
    for at in range(len(executions) - 1, max(-1, len(executions) - 9), -1):
        ran = executions[at]
        if ran.number == number and number is not None:
            executions[at] = ran._replace(dur=max(ran.dur, row["t"] + dur - ran.start))
            return True
    return False


def ids(value: object) -> tuple[str, ...]:
    """The names in a JSON list."""
    listed = cast("list[object]", value if isinstance(value, list) else [])
    return tuple(text_of(item) for item in listed if isinstance(item, str))


def counts(found: Found, value: object) -> dict[str, int]:
    """Tokens by name. Problems: ``bad_token_count``."""
    counted = cast("dict[str, object]", value if isinstance(value, dict) else {})
    good = {text_of(key): tokens for key, number in counted.items() if (tokens := few(number)) is not None}
    if len(good) < len(counted):
        found.problems["bad_token_count"] += len(counted) - len(good)
    return good


def _share(value: object) -> float | None:
    """A number from 0 to 1."""
    parts = scaled(value, PERCENT_OF_PERCENT)
    return parts / PERCENT_OF_PERCENT if parts is not None and 0 <= parts <= PERCENT_OF_PERCENT else None
