"""What a method said beside what is true, as columns: steps, requests, operators and ranks of many episodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from teller_core.data.capture import processes
from teller_core.data.table import Float64, Int32, Int64, Mask, Text
from teller_core.lab.evaluation.causes import is_across
from teller_core.lab.evaluation.episode import NOT_JUDGED, Episode
from teller_core.lab.evaluation.method import CAUSE, Judged

Objects = npt.NDArray[np.object_]
FELT = 3.0
"""d' from which an effect stands out of the noise."""


@dataclass(frozen=True)
class StepRows:
    """One row a judged step of an episode. ``life``, ``window`` int32: numbers over all episodes; ``moment`` int64: when it
    began, which with the life tells steps apart; ``label`` bool: abnormal; ``score``, ``flag``: what the method said; ``across``
    bool: of an episode whose strike is between ranks; ``severity`` and ``d_prime`` of that strike.
    """

    life: Int32
    window: Int32
    moment: Int64
    label: Mask
    score: Float64
    flag: Mask
    d_prime: Float64
    profiled: Mask
    across: Mask
    severity: Objects


@dataclass(frozen=True)
class RequestRows:
    """One row a judged request of an episode. ``truth``: a cause, empty for none; ``claims``: causes, the surest first; ``sure``
    float64: of the verdict; ``hard`` bool: of a hard negative; ``severity`` and ``d_prime`` of its episode's strike.
    """

    life: Int32
    window: Int32
    episode: Int32
    truth: Text
    claims: Sequence[Sequence[str]]
    verdict: Text
    sure: Float64
    hard: Mask
    severity: Objects
    d_prime: Float64


@dataclass(frozen=True)
class NameRows:
    """One row a step of which it is known what is to blame: the ``named`` and the ``right`` operators or ranks; ``severity`` and
    ``d_prime`` of its episode's strike.
    """

    life: Int32
    window: Int32
    named: Sequence[Sequence[str]]
    right: Sequence[Sequence[str]]
    severity: Objects
    d_prime: Float64


@dataclass(frozen=True)
class Rows:
    """All of it; ``healthy_ns`` int64 and ``healthy_life`` int32, an entry an episode: how long its healthy windows are."""

    steps: StepRows
    requests: RequestRows
    operators: NameRows
    ranks: NameRows
    healthy_ns: Int64
    healthy_life: Int32
    episodes: int
    lives: int


def rows_of(episodes: Sequence[Episode], said: Sequence[Judged]) -> Rows:
    """What was ``said`` of ``episodes``, beside their truth."""
    lives = {life: at for at, life in enumerate(sorted({episode.life for episode in episodes}))}
    life = [lives[episode.life] for episode in episodes]
    windows: dict[tuple[int, int], int] = {}
    return Rows(
        steps=_steps(episodes, said, life, windows),
        requests=_requests(episodes, said, life, windows),
        operators=_names(episodes, [j.operators for j in said], [e.labels.operators for e in episodes], life, windows),
        ranks=_names(
            episodes,
            [[_processes(e, mine) for mine in j.ranks] for e, j in zip(episodes, said, strict=True)],
            [{step: tuple(_processes(e, [rank])) for step, rank in e.labels.ranks.items()} for e in episodes],
            life,
            windows,
        ),
        healthy_ns=np.array([episode.labels.healthy_ns for episode in episodes], dtype=np.int64),
        healthy_life=np.array(life, dtype=np.int32),
        episodes=len(episodes),
        lives=len(lives),
    )


def _processes(episode: Episode, ranks: Sequence[int]) -> list[str]:
    """``ranks`` by the process of each, once: a process that was recorded twice has two positions and is one to blame."""
    own = processes(episode.seen.capture.ranks)
    return list(dict.fromkeys(str(own[rank]) for rank in ranks))


def felt(rows: StepRows | RequestRows | NameRows) -> Mask:
    """bool a row: the strike of its episode had an effect that stands out of the noise."""
    return rows.d_prime >= FELT


def struck_how(rows: StepRows | RequestRows | NameRows) -> list[str]:
    """How hard faults struck, each once."""
    return sorted({str(each) for each in rows.severity.tolist() if each})


def distinct_windows(window: Int32) -> int:
    """How many windows rows come from; what lies in none stands alone."""
    return len(np.unique(window[window >= 0])) + int((window < 0).sum())


def _window(windows: dict[tuple[int, int], int], life: int, window: int) -> int:
    return -1 if window < 0 else windows.setdefault((life, window), len(windows))


def _steps(
    episodes: Sequence[Episode], said: Sequence[Judged], life: Sequence[int], windows: dict[tuple[int, int], int]
) -> StepRows:
    parts: list[tuple[npt.NDArray[np.generic], ...]] = []
    for episode, judged, own in zip(episodes, said, life, strict=True):
        labels, case = episode.labels, episode.seen.case
        mine = np.flatnonzero(labels.step >= 0)
        window = [_window(windows, own, each) for each in labels.step_window[mine].tolist()]
        parts.append(
            (
                np.full(len(mine), own, dtype=np.int32),
                np.array(window, dtype=np.int32),
                case.begin[mine],
                labels.step[mine] == 1,
                judged.step_score[mine],
                judged.step_flag[mine] > 0,
                np.full(len(mine), labels.d_prime),
                case.profiled[mine],
                np.full(len(mine), is_across(labels.cause)),
                np.full(len(mine), labels.severity, dtype=object),
            )
        )
    empty = (np.int32, np.int32, np.int64, np.bool_, np.float64, np.bool_, np.float64, np.bool_, np.bool_, np.object_)
    columns = [
        np.concatenate([np.empty(0, dtype=kind), *(part[at] for part in parts)]) for at, kind in enumerate(empty)
    ]
    return StepRows(*columns)  # pyright: ignore[reportArgumentType] -- each column has the kind that stands above


def _requests(
    episodes: Sequence[Episode], said: Sequence[Judged], life: Sequence[int], windows: dict[tuple[int, int], int]
) -> RequestRows:
    places = [
        (at, request)
        for at, episode in enumerate(episodes)
        for request, label in enumerate(episode.labels.request)
        if label != NOT_JUDGED
    ]
    labels = [episode.labels for episode in episodes]
    return RequestRows(
        life=np.array([life[at] for at, _ in places], dtype=np.int32),
        window=np.array([_window(windows, life[at], int(labels[at].request_window[r])) for at, r in places], np.int32),
        episode=np.array([at for at, _ in places], dtype=np.int32),
        truth=[labels[at].request[r] for at, r in places],
        claims=[_claimed(said[at], r) for at, r in places],
        verdict=[said[at].verdict[r] for at, r in places],
        sure=np.array([said[at].sure[r] for at, r in places], dtype=np.float64),
        hard=np.array([labels[at].hard[r] for at, r in places], dtype=np.bool_),
        severity=np.array([labels[at].severity for at, _ in places], dtype=object),
        d_prime=np.array([labels[at].d_prime for at, _ in places], dtype=np.float64),
    )


def _claimed(judged: Judged, request: int) -> list[str]:
    """A cause is claimed where the verdict is one."""
    return [claim.cause for claim in judged.causes[request]] if judged.verdict[request] == CAUSE else []


def _names(
    episodes: Sequence[Episode],
    named: Sequence[Sequence[Sequence[str]]],
    right: Sequence[Mapping[int, tuple[str, ...]]],
    life: Sequence[int],
    windows: dict[tuple[int, int], int],
) -> NameRows:
    places = [(at, step) for at, mine in enumerate(right) for step in sorted(mine)]
    labels = [episode.labels for episode in episodes]
    return NameRows(
        life=np.array([life[at] for at, _ in places], dtype=np.int32),
        window=np.array([_window(windows, life[at], int(labels[at].step_window[s])) for at, s in places], np.int32),
        named=[named[at][step] for at, step in places],
        right=[right[at][step] for at, step in places],
        severity=np.array([labels[at].severity for at, _ in places], dtype=object),
        d_prime=np.array([labels[at].d_prime for at, _ in places], dtype=np.float64),
    )
