"""Two machines, as two network namespaces with a link between them that can be made slow: what recordings of both tell.

Ranks over Gloo: healthy, with a slow rank, with a slow link. With ``--vllm VLLM``, the command that tests/studies/environment.py
made, also real vLLM with tensor parallel 2 on two nodes, its link slow for the last requests. Each node records its own
bundle; the bundles are merged and imported.

Run as root: python tests/studies/two_nodes.py [--vllm VLLM] [--keep FOLDER]. Under two minutes, and some four with vLLM.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from teller_core.answers import slow, why
from teller_core.collect.merge import merge
from teller_core.data.report import CaptureReport
from teller_core.lab import load
from teller_core.lab.link import Conditions, linked
from teller_core.lab.nodes import NODES
from teller_core.lab.serving import Setup, program, served
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from tests.studies.engines import nothing
from tests.studies.gloo_pair import Told, rebuilt, run_pair

STEPS = 150
SLOW_MS, DELAY_MS = 30.0, 8.0
HEALTHY, DELAYED = 180, 20
CONNECTIONS = 8


def main() -> None:
    """Run all of it and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", type=Path, help="also serve with it on two nodes")
    parser.add_argument("--only-vllm", action="store_true", help="leave the ranks over Gloo out")
    parser.add_argument("--keep", type=Path, help="leave the bundles there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="teller-nodes-") as scratch:
        kept = asked.keep or Path(scratch)
        kept.mkdir(parents=True, exist_ok=True)
        if not asked.only_vllm:
            _gloo(kept)
        if asked.vllm:
            _vllm(asked.vllm.absolute(), kept)


def _gloo(kept: Path) -> None:
    _row("ranks over Gloo", "matched", "transfer ms", "last of both", "waited", "clock error ms", "told")
    for name, variables, conditions in (
        ("healthy", {}, Conditions()),
        ("slow rank 1", {1: {"SLOW_MS": str(SLOW_MS)}}, Conditions()),
        ("slow link", {}, Conditions(delay_ms=DELAY_MS)),
    ):
        with linked(conditions) as link:
            bundles = run_pair(link, kept / name.replace(" ", "-"), STEPS, variables)
        merge(bundles, kept / f"{name.replace(' ', '-')}-merged")
        for path in kept.glob("*-merged/*/bundle.json"):  # as two machines, of which neither says how good its clock is
            about = json.loads(path.read_text())
            path.write_text(json.dumps({**about, "clock": {"machine": path.parent.name, "max_error_us": None}}))
        told = Told(rebuilt(kept / f"{name.replace(' ', '-')}-merged"))
        late = told.straggler()
        said = (
            f"rank {late}"
            if late is not None
            else f"the link, {told.transfer_ms:.0f} ms"
            if told.transfer_ms > 5
            else "-"
        )
        share = "/".join(f"{part:.0%}" for part in told.waited)
        _row(name, str(told.met), f"{told.transfer_ms:.2f}", f"{told.late}", share, f"{told.clock_error_ms:.2f}", said)
    with linked() as link:
        bundles = run_pair(link, kept / "hang", STEPS, {1: {"HANG": "20"}}, hangs=True)
    absent = rebuilt(*bundles).absences
    rows = zip(absent.rank, absent.sequence, absent.group, strict=True)
    said = [f"rank {rank} did not come to number {number} of group {group}" for rank, number, group in rows]
    _row("rank 1 hangs", "; ".join(said) or "-")


def _vllm(vllm: Path, kept: Path) -> None:
    """Serve on two nodes, slow the link down for the last requests, merge, import, ask."""
    began = 0
    with served(Setup(ranks=2, apart=True), program("vllm", vllm), kept / "merged", _progress) as live:
        assert live.link is not None
        for prefix, many, conditions in (
            ("well", HEALTHY, Conditions()),
            ("late", DELAYED, Conditions(delay_ms=DELAY_MS)),
        ):
            with live.link.during(conditions) as began:
                rows = load.send(live.target, _asks(prefix, many), CONNECTIONS, 1, nothing)
            load.append(live.service.folder / "client.jsonl", rows)
    sent = [json.loads(line) for line in (kept / "merged" / NODES[0] / "client.jsonl").read_text().splitlines()]
    with contextlib.closing(Store.open(kept / "merged.db")) as store:
        report = import_paths([kept / "merged"], store).captures[0]
        _tell(store, report, sent)
    capture = rebuilt(kept / "merged")
    arrived = capture.meetings.arrived
    share = float((arrived < began).mean()) if len(arrived) else 0.0
    for name, part in (("link healthy", (0.0, share)), ("link slow", (share, 1.0))):
        told = Told(capture, part)
        _row(
            name, f"{told.met} all-reduces matched", f"transfer {told.transfer_ms:.2f} ms", f"last of both {told.late}"
        )


def _tell(store: Store, report: CaptureReport, sent: Sequence[dict[str, Any]]) -> None:
    failed = sum(row["err"] is not None for row in sent)
    identity = report.identity
    _row(
        "vLLM -tp 2 --nnodes 2",
        f"{report.requests} requests of {len(sent)} sent, {failed} failed",
        f"mapping {report.mapping}",
    )
    _row("steps with requests", f"{report.steps_with_requests} of {report.steps}")
    if identity is not None:
        _row("identity", f"{identity.holds} of {identity.checked}", json.dumps(identity.terms))
    ranks = [f"rank {rank.rank} on {rank.host}" for rank in report.ranks if rank.role == "worker"]
    _row("ranks", ", ".join(ranks), f"clock error {(report.clock_error_ns or 0) / 1e6:.2f} ms")
    page = slow(store, capture=report.id, limit=len(sent))
    number, name = page.columns.index("request"), page.columns.index("engine_id")
    found = {"well": [0, 0, 0], "late": [0, 0, 0]}
    for row in page.rows:
        verdict = why(store, str(row[number]), capture=report.id)
        kind = "late" if "late-" in str(row[name]) else "well"
        found[kind][0] += 1
        causes = [finding.cause for finding in verdict.findings]
        found[kind][1] += "comm.degraded_link" in causes
        found[kind][2] += causes[:1] == ["comm.degraded_link"]
    for kind, what in (("late", "requests over the slow link"), ("well", "other requests")):
        many, named, first = found[kind]
        _row(what, f"{many}", f"the link is a cause of {named}", f"the first of {first}")


def _asks(prefix: str, many: int) -> list[load.Ask]:
    lengths: list[tuple[int, int]] = [((3, 8, 20, 60)[i % 4], (2, 8, 16, 24)[(i // 4) % 4]) for i in range(many)]
    return [load.Ask(f"{prefix}-{i:03d}", 0.0, words, output) for i, (words, output) in enumerate(lengths)]


def _progress(_: str) -> None:
    pass


def _row(*cells: str) -> None:
    sys.stdout.write(" | ".join(cells) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
