"""The wheel as a stranger gets it: built, installed without PyTorch in an environment of its own, spoken to over stdio.

Run: python tests/wheel_check.py. Prints a line a check; exits with 1 at the first that fails. It needs a package index.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROMPTS = sorted(path.name for path in (ROOT / "prompts").glob("*.md"))
TALK = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

async def talk(command, folder):
    server = StdioServerParameters(command=command, args=["--root", folder, "--db", folder + "/teller.db"], cwd=folder)
    with open(folder + "/log", "w") as log:
        async with Client(stdio_client(server, errlog=log)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            prompts = {}
            for prompt in (await client.list_prompts()).prompts:
                values = {argument.name: "42" for argument in prompt.arguments if argument.required}
                answer = await client.get_prompt(prompt.name, values)
                prompts[prompt.name] = len(answer.messages[0].content.text)
            refused = await client.call_tool("run_rca", {"request": 42})
            print(json.dumps({"tools": tools, "prompts": prompts, "refused": refused.content[0].text}))

asyncio.run(talk(*sys.argv[1:]))
"""


WEIGHTS = "teller_core/model/weights/model.safetensors"
LARGEST = 8_000_000
"""Bytes of weights that a wheel may carry."""
LOAD = """
import sys
sys.path.insert(0, sys.argv[1])
from teller_core.model import judging
model = judging.load()
print(judging.__file__.startswith(sys.argv[1]), sum(weight.numel() for weight in model.network.parameters()))
"""


def check(what: str, holds: bool, shown: object = "") -> None:
    """Print the line of one check; leave with 1 where it fails."""
    sys.stdout.write(f"{'ok  ' if holds else 'FAIL'}  {what}{f': {shown}' if shown != '' else ''}\n")
    sys.stdout.flush()
    if not holds:
        raise SystemExit(1)


def run(command: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run ``command`` in ``folder`` with nothing of this environment's Python."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV", "TELLER"))
    }
    return subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )


def build(folder: Path) -> Path:
    """The wheel, built in ``folder``."""
    done = run([sys.executable, "-m", "build", "--wheel", "--outdir", folder / "dist", ROOT], folder)
    check("the wheel is built", done.returncode == 0, done.stderr[-800:] if done.returncode else "")
    [wheel] = (folder / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    check(
        "it carries the prompts", [f"teller_mcp/prompts/{name}" in names for name in PROMPTS] == [True] * len(PROMPTS)
    )
    check("it carries the taxonomy", "teller_core/data/taxonomy.toml" in names)
    check("it carries the vocabulary", "teller_core/context/tpe/default.tpe" in names)
    check("it carries no tests", not [name for name in names if name.startswith("tests")])
    weigh(wheel, folder)
    return wheel


def weigh(wheel: Path, folder: Path) -> None:
    """The weights of the model in ``wheel``, where this checkout has some: their size, their card, and that they load by what
    else is in it, where this environment has PyTorch.
    """
    archive = zipfile.ZipFile(wheel)
    carried = WEIGHTS in archive.namelist()
    if not (ROOT / WEIGHTS).is_file():
        check("it carries no weights: none are made", not carried)
        return
    check("it carries the weights", carried)
    size = archive.getinfo(WEIGHTS).file_size
    check(f"of {LARGEST:,} bytes at most", size <= LARGEST, f"{size:,}")
    check("with their card", WEIGHTS.replace("model.safetensors", "MODEL.md") in archive.namelist())
    if not all(find_spec(name) for name in ("torch", "transformers", "safetensors")):
        check("whether they load is not seen: this environment is without the extra", True)
        return
    unpacked = (folder / "unpacked").resolve()
    archive.extractall(unpacked)
    done = run([sys.executable, "-c", LOAD, unpacked], folder)
    whole, _, many = done.stdout.strip().partition(" ")
    check("they load, by what is in the wheel", done.returncode == 0 and whole == "True", many or done.stderr[-800:])


def install(wheel: Path, folder: Path) -> Path:
    """The folder of programs of a clean environment that holds ``wheel`` and what it needs."""
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    done = run([programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], folder)
    check("it is installed in a clean environment", done.returncode == 0, done.stderr[-800:] if done.returncode else "")
    done = run([programs / "python", "-c", "import importlib.util as u; print(u.find_spec('torch'))"], folder)
    check("without PyTorch", done.stdout == "None\n")
    return programs


def speak(programs: Path, folder: Path) -> None:
    """Ask the installed programs what they are for."""
    done = run([programs / "teller", "--version"], folder)
    check("teller --version", done.stdout == f"teller {version('teller-mcp')}\n", done.stdout.strip())
    done = run([programs / "teller", "captures", "--json", "--db", folder / "empty.db"], folder)
    listed = json.loads(done.stdout) if done.returncode == 0 else {}
    check("teller captures --json, of nothing", listed.get("captures") == [], (done.stdout + done.stderr)[-800:])
    done = run([programs / "teller", "why", "42", "--db", folder / "none.db"], folder)
    check("teller why, of nothing, is refused in a line", done.returncode == 2 and done.stderr.count("\n") == 1)
    done = run([programs / "teller", "demo"], folder)
    check("teller demo, without its extra, says which one", done.returncode == 2 and "teller-mcp[lab]" in done.stderr)
    (folder / "talk.py").write_text(TALK)
    done = run([programs / "python", folder / "talk.py", programs / "teller-mcp", folder], folder)
    check("teller-mcp speaks over stdio", done.returncode == 0, done.stderr[-800:] if done.returncode else "")
    said = json.loads(done.stdout)
    check("it lists its tools", len(said["tools"]) == 7, ", ".join(said["tools"]))
    check("every prompt can be had", sorted(f"{name}.md" for name in said["prompts"]) == PROMPTS, said["prompts"])
    check("all of them say something", min(said["prompts"].values()) > 500)
    check("a refusal says what to do", "mport" in said["refused"], said["refused"])


def main() -> None:
    """All checks, in order."""
    with tempfile.TemporaryDirectory(prefix="teller-wheel-") as name:
        folder = Path(name)
        speak(install(build(folder), folder), folder)


if __name__ == "__main__":
    main()
