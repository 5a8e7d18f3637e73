"""From starting the server's process to its list of tools, beside a bare server of the SDK with as many tools.

Run: python tests/bench/mcp_bench.py [PAIRS]. The two alternate, so that a busy machine is busy for both. Prints the median of
each, in wall time and CPU time, and the ratio of the pairs' median.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

BARE = """
from mcp.server import MCPServer
server = MCPServer("bare")
for name in ("a", "b", "c", "d", "e", "f"):
    def tool(text: str, number: int = 1) -> str:
        "Answer."
        return text
    server.add_tool(tool, name=name)
server.run("stdio")
"""
LINES = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"bench","version":"0"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
)


def spawn(command: list[str]) -> tuple[float, float]:
    """Seconds of wall time until the tools are listed, and CPU seconds until the process is gone."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(LINES)
        process.stdin.flush()
        answers = [process.stdout.readline(), process.stdout.readline()]
        took = perf_counter() - began
        assert b'"tools":[' in answers[1], answers
        process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        ours = [sys.executable, "-m", "teller_mcp", "--db", str(Path(folder) / "t.db"), "--root", folder]
        bare = [sys.executable, "-c", BARE]
        for command in (ours, bare):
            spawn(command)
        measured = [(spawn(ours), spawn(bare)) for _ in range(pairs)]
    for at, what in enumerate(("wall", "CPU")):
        us, them = median(pair[0][at] for pair in measured), median(pair[1][at] for pair in measured)
        ratio = median(pair[0][at] / pair[1][at] for pair in measured)
        print(f"{what}: teller-mcp {us:.3f} s, bare SDK {them:.3f} s, ratio of pairs {ratio:.2f} over {pairs} pairs")


if __name__ == "__main__":
    main()
