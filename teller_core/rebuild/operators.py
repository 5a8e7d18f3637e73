"""What other recordings of a process say about the spans of its trace: shapes of operators, operators of graphs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from teller_core.data.capture import GRAPH_CAPTURE, Joined
from teller_core.data.records import Recording
from teller_core.data.tree import Tree
from teller_core.rebuild.annotations import annotated
from teller_core.rebuild.engines import Place
from teller_core.rebuild.graph_capture import Fit, Graph, Replay, fit, graphs_of, replays_of
from teller_core.rebuild.graph_paths import MOST_ROWS, Layout, Placed, layout_of, with_paths
from teller_core.rebuild.operator_shapes import count_times, of_process, with_shapes
from teller_core.rebuild.ranks import Ranked

LONGEST_NAME = 80


@dataclass(frozen=True)
class Operators:
    """Trees with all that is known of their operators. ``captured``: those that recorded how graphs were captured, and have an
    execution beside them. ``joined``: by tree.
    """

    trees: Sequence[Tree]
    captured: frozenset[int]
    joined: Sequence[tuple[int, Joined]]

    def marked(self, ranked: Ranked) -> Ranked:
        """``ranked`` with the role of those whose tree recorded a capture."""
        ranks = [
            replace(rank, role=GRAPH_CAPTURE) if tree in self.captured else rank
            for rank, tree in zip(ranked.ranks, ranked.trees, strict=True)
        ]
        return ranked._replace(ranks=ranks)

    def by_rank(self, ranked: Ranked) -> list[Joined]:
        """What was joined, each with the position of its rank."""
        at = {tree: rank for rank, tree in enumerate(ranked.trees)}
        return [one._replace(rank=at.get(tree, -1)) for tree, one in self.joined]


def with_operators(
    recording: Recording, trees: Sequence[Tree], places: Sequence[Place], problems: Counter[str]
) -> Operators:
    """``trees`` with shapes from execution traces, and the kernels of replays below the operators of their graphs.

    ``places``: the process of each tree. Problems: ``replayed_kernels_without_operator`` (where a capture was recorded),
    ``operators_without_span`` (of an execution trace beside a trace of its process), ``operators_of_ambiguous_shapes``,
    ``starts_not_recorded``.
    """
    shaped, joined = _shaped(recording, trees, places, problems)
    graphs = [graphs_of(tree) for tree in shaped]
    alone = [bool(of) and _capture_alone(tree) for of, tree in zip(graphs, shaped, strict=True)]
    out, captured = list(shaped), set[int]()
    for i, tree in enumerate(shaped):
        near = [k for k, of in enumerate(graphs) if of and _same_process(recording, places, i, k)]
        if alone[i] or not near:
            continue
        out[i], told = _mapped(tree, [graph for k in near for graph in graphs[k]], problems)
        joined += [(i, one) for one in told]
        captured |= {k for k in near if alone[k]}
    return Operators(out, frozenset(captured), joined)


def _capture_alone(tree: Tree) -> bool:
    """Whether nothing was run in the trace but the capture of graphs: it names no step and launches no graph."""
    return not len(annotated(tree)) and next(replays_of(tree), None) is None


def _same_process(recording: Recording, places: Sequence[Place], one: int, other: int) -> bool:
    """Whether two trees are of one process: by host and pid and, where both traces tell it, rank."""
    ranks = [recording.traces[i][1].origin.rank for i in (one, other)]
    if None not in ranks and ranks[0] != ranks[1]:
        return False
    return places[one] == places[other] or (places[one].pid <= 0 and None not in ranks)


def _mapped(tree: Tree, graphs: Sequence[Graph], problems: Counter[str]) -> tuple[Tree, list[Joined]]:
    """``tree`` with the replays of ``graphs`` laid out, and how many kernels of each graph have an operator."""
    known: dict[tuple[str, ...], tuple[Fit, Layout] | None] = {}
    placed: list[Placed] = []
    counts: dict[tuple[str, bool], list[int]] = {}
    rows = 0
    for replay in replays_of(tree):
        found = _known(replay, graphs, known)
        if found is None or rows + found[1].added > MOST_ROWS:
            problems["replayed_kernels_without_operator"] += len(replay.names)
            continue
        fitted, layout = found
        rows += layout.added
        placed.append(Placed(replay.row, layout))
        matched = int((graphs[fitted.graph].node[fitted.kernel[fitted.kernel >= 0]] >= 0).sum())
        count = counts.setdefault((graphs[fitted.graph].label, fitted.named), [0, 0, 0])
        count[0], count[1], count[2] = count[0] + matched, count[1] + len(replay.names), count[2] + 1
        problems["replayed_kernels_without_operator"] += len(replay.names) - matched
    joined = [
        Joined("graph", _shown(label), -1, matched, total, launches=launches, by_name=named)
        for (label, named), (matched, total, launches) in counts.items()
    ]
    return (with_paths(tree, placed, graphs) if placed else tree), joined


def _known(
    replay: Replay, graphs: Sequence[Graph], known: dict[tuple[str, ...], tuple[Fit, Layout] | None]
) -> tuple[Fit, Layout] | None:
    """What fits ``replay``, worked out once for all replays with the same kernels."""
    key = (*replay.names, str(replay.streams == 1))
    if key not in known:
        found = fit(replay, graphs)
        known[key] = None if found is None else (found, layout_of(found, graphs[found.graph]))
    return known[key]


def _shaped(
    recording: Recording, trees: Sequence[Tree], places: Sequence[Place], problems: Counter[str]
) -> tuple[list[Tree], list[tuple[int, Joined]]]:
    count_times(recording.operators, problems)
    out, joined = list(trees), list[tuple[int, Joined]]()
    for (host, pid, rank), operators in of_process(recording.operators).items():
        mine = [i for i in range(len(trees)) if _is_of(recording, places, i, (host, pid, rank))]
        if not mine or all(recording.traces[i][1].origin.producer.startswith("chakra") for i in mine):
            continue
        best = 0
        for i in mine:
            shaped = with_shapes(out[i], operators)
            if shaped.matched:
                out[i] = shaped.tree
                joined.append((i, Joined("execution_trace", "", -1, shaped.matched, len(operators), used=shaped.used)))
            problems["operators_of_ambiguous_shapes"] += shaped.ambiguous
            best = max(best, shaped.matched)
        problems["operators_without_span"] += len(operators) - best
    return out, joined


def _is_of(recording: Recording, places: Sequence[Place], tree: int, process: tuple[str, int, int]) -> bool:
    """Whether a tree is of the process that an execution trace names: by pid, else by rank, else as the only one."""
    host, pid, rank = process
    if pid > 0 and any(where.pid == pid for where in places):
        return places[tree].pid == pid and (not host or places[tree].host in ("", host))
    own = recording.traces[tree][1].origin.rank
    if rank >= 0 and own is not None:
        return rank == own
    return len(places) == 1


def _shown(label: str) -> str:
    return "".join(c if c.isprintable() else " " for c in label[:LONGEST_NAME])
