"""Two machines, as two network namespaces with a link between them that can be made slow: what recordings of both tell.

Ranks over Gloo: healthy, with a slow rank, with a slow link. With ``--vllm VLLM``, the command that tests/studies/environment.py
made, also real vLLM with tensor parallel 2 on two nodes, its link slow for the last requests. Each node records its own
bundle; the bundles are merged and imported.

Run as root: python tests/studies/two_nodes.py [--vllm VLLM] [--keep FOLDER]. Under two minutes, and some four with vLLM.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from teller_core.answers import slow, why
from teller_core.collect.bundle import Service, record
from teller_core.collect.merge import merge
from teller_core.data.report import CaptureReport
from teller_core.lab import load
from teller_core.lab.link import ADDRESSES, DEVICE, Conditions, Link, linked
from teller_core.lab.model import tiny_model
from teller_core.lab.serving import VARIABLES
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from tests.studies.gloo_pair import Told, rebuilt, run_pair

STEPS = 150
SLOW_MS, DELAY_MS = 30.0, 8.0
HEALTHY, DELAYED = 180, 20
CONNECTIONS = 8
START_S = 200.0
PORT = 8120
MASTER = "29600"


def main() -> None:
    """Run all of it and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", type=Path, help="also serve with it on two nodes")
    parser.add_argument("--only-vllm", action="store_true", help="leave the ranks over Gloo out")
    parser.add_argument("--keep", type=Path, help="leave the bundles there")
    parser.add_argument("--load", nargs=4, metavar=("MODEL", "PREFIX", "MANY", "FILE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.load:
        _ask(asked.load[0], asked.load[1], int(asked.load[2]), Path(asked.load[3]))
        return
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
    model = tiny_model(kept)
    bundles = [kept / "node-a", kept / "node-b"]
    with linked() as link, ExitStack() as stack:
        services = [
            stack.enter_context(_node(link, side, _serving(vllm, model, side), bundles[side], model.parent))
            for side in (1, 0)
        ]
        _wait_until_up(link, services)
        _load(link, model, "well", HEALTHY, kept / "well.jsonl")
        link.set(Conditions(delay_ms=DELAY_MS))
        _load(link, model, "late", DELAYED, kept / "late.jsonl")
        link.set(Conditions())
    clients = [kept / "well.jsonl", kept / "late.jsonl"]
    (bundles[0] / "client.jsonl").write_text("".join(path.read_text() for path in clients))
    merge(bundles, kept / "merged")
    began = link.changes[1].time
    with contextlib.closing(Store.open(kept / "merged.db")) as store:
        report = import_paths([kept / "merged"], store).captures[0]
        _tell(store, report, clients)
    capture = rebuilt(kept / "merged")
    after = [int(time >= began) for time in capture.meetings.arrived.tolist()]
    share = 1 - sum(after) / max(len(after), 1)
    for name, part in (("link healthy", (0.0, share)), ("link slow", (share, 1.0))):
        told = Told(capture, part)
        _row(
            name, f"{told.met} all-reduces matched", f"transfer {told.transfer_ms:.2f} ms", f"last of both {told.late}"
        )


def _tell(store: Store, report: CaptureReport, clients: Sequence[Path]) -> None:
    sent = [json.loads(line) for path in clients for line in path.read_text().splitlines()]
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


def _serving(vllm: Path, model: Path, side: int) -> list[str]:
    words = [str(vllm), "serve", f"./{model.name}", "--host", "127.0.0.1", "--port", str(PORT)]
    words += ["--dtype", "float32", "--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "8"]
    words += ["-tp", "2", "--nnodes", "2", "--node-rank", str(side), "--master-addr", ADDRESSES[0]]
    words += ["--master-port", MASTER, "--distributed-executor-backend", "mp"]
    return words if side == 0 else [*words, "--headless"]


def _node(
    link: Link, side: int, command: Sequence[str], bundle: Path, folder: Path
) -> contextlib.AbstractContextManager[Service]:
    return record(link.command(side, command), bundle, _variables(side), working_folder=folder)


def _variables(side: int) -> dict[str, str]:
    return {**VARIABLES, "VLLM_HOST_IP": ADDRESSES[side], "GLOO_SOCKET_IFNAME": DEVICE}


def _wait_until_up(link: Link, services: Sequence[Service]) -> None:
    late = time.monotonic() + START_S
    probe = f"import sys; from teller_core.lab.load import healthy; sys.exit(not healthy({PORT}))"
    while subprocess.run(link.command(0, [sys.executable, "-c", probe]), env=_ours(), check=False).returncode:
        if any(service.process.poll() is not None for service in services) or time.monotonic() > late:
            raise SystemExit("The server did not come up: read server.log in the bundles (--keep)")
        time.sleep(1.0)


def _load(link: Link, model: Path, prefix: str, many: int, target: Path) -> None:
    """Ask ``many`` requests inside of the first node's namespace."""
    words = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--load",
        f"./{model.name}",
        prefix,
        str(many),
        str(target.resolve()),
    ]
    subprocess.run(link.command(0, words), env=_ours(), check=True)


def _ours() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}


def _ask(model: str, prefix: str, many: int, target: Path) -> None:
    lengths: list[tuple[int, int]] = [((3, 8, 20, 60)[i % 4], (2, 8, 16, 24)[(i // 4) % 4]) for i in range(many)]
    asks = [load.Ask(f"{prefix}-{i:03d}", 0.0, words, output) for i, (words, output) in enumerate(lengths)]
    rows: list[dict[str, Any]] = load.send(load.Target(PORT, model), asks, CONNECTIONS, 1, lambda: None)
    load.write(target, rows)


def _row(*cells: str) -> None:
    sys.stdout.write(" | ".join(cells) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
