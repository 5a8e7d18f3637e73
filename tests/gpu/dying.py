"""What may crash or blind CUPTI, each case in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from asking import HERE, Answer, Worker

KINDS = "TELLER_GPU_KINDS"
"""Of a case: the kinds of records that its layout is cut down to; ``-39`` is all but one."""
CASES: tuple[tuple[str, dict[str, str]], ...] = (
    ("before_nodes", {}),
    ("after_nodes", {}),
    ("profiler_graph", {}),
    ("after_whole", {}),
    ("before_whole", {}),
    ("before_whole", {KINDS: "10 51"}),
    ("one_window", {}),
    ("many", {}),
    ("many_loaded", {}),
    ("many_loaded", {KINDS: "10"}),
    ("many_loaded", {KINDS: "-39"}),
    ("many_loaded", {KINDS: "-4"}),
)
MAY_DIE = ("before_whole", "after_whole")
"""Cases that are here to tell what happens: nothing of ours asks for a whole replay by itself."""
AT_ONCE = 6


def _layout(path: Path, kept: str) -> None:
    lines = path.read_text().splitlines()
    wanted = {*kept.split()} if "-" not in kept else {str(i) for i in range(64)} - {kept.strip("-")}
    lines = [
        line for line in lines if line.split()[0] in ("teller-layout", "versions", "json") or line.split()[1] in wanted
    ]
    path.write_text("\n".join(lines) + "\n")


def cases(folder: Path) -> Answer:
    """What may crash or blind CUPTI, each in a process of its own, some at once."""
    crash = folder / "crash.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(crash), str(HERE / "crash.c")], check=True)
    ok = True
    for first in range(0, len(CASES), AT_ONCE):
        started: list[tuple[str, subprocess.Popen[bytes], Path]] = []
        for i, (name, more) in enumerate(CASES[first : first + AT_ONCE], first):
            cap = folder / f"case-{i}"
            cap.mkdir()
            variables = {**os.environ, **Worker.variables(cap, cap.parent / "built"), **more, "OMP_NUM_THREADS": "1"}
            if KINDS in more:
                _layout(Path(variables["TELLER_INJECT_LAYOUT"]), more[KINDS])
            command = [sys.executable, str(HERE / "cases.py"), name, str(crash)]
            process = subprocess.Popen(
                command, env=variables, stdout=subprocess.PIPE, stderr=(cap / "errors").open("wb")
            )
            started.append((" ".join([name, *(f"{key[7:]}={value}" for key, value in more.items())]), process, cap))
        held = [_case(*one) for one in started]  # all of them, also after one that failed
        ok &= all(held)
    return {"ok": ok}


def _case(name: str, process: "subprocess.Popen[bytes]", cap: Path) -> bool:
    try:
        output, _ = process.communicate(timeout=40)
        status: int | str = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        output, status = b"", "no end"
    lines = (cap / "errors").read_text(errors="replace").strip().splitlines()
    told: Answer = {}
    for line in lines:
        if line.startswith("TOLD "):
            told |= json.loads(line[5:])
    told |= json.loads(output) if output.strip() else {}
    crash = lines[lines.index("CRASH in C:") :][:20] if "CRASH in C:" in lines else lines[-3:] if status else []
    print(json.dumps({"case": name, "status": status, **told, "crash": crash}), flush=True)  # noqa: T201
    return name.startswith(MAY_DIE) or (status == 0 and "error" not in told)
