"""What is installed where the served program runs, from its packages' metadata: no engine is imported."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from teller_core.errors import InputError

COMMANDS = ("vllm", "sglang", "transformers")
"""Commands that start an engine: the first line of the one that is found tells the interpreter it runs in."""
PACKAGES = (
    "vllm",
    "sglang",
    "transformers",
    "torch",
    "nvtx",
    "uvicorn",
    "cupti-python",
    "nvidia-cuda-cupti",
    "nvidia-cuda-cupti-cu12",
    "opentelemetry-exporter-otlp",
    "python-json-logger",
    "ray",
)
LOOK_S = 20
_ASK = """
import json, sys
from importlib import metadata
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps({"python": sys.version.split()[0], "flags": [sys.flags.isolated, sys.flags.no_site], "found": found}))
"""


class Served(NamedTuple):
    """``packages``: versions by name, those of PACKAGES that are there."""

    python: Path
    version: str
    packages: Mapping[str, str]

    def minor(self, package: str) -> str:
        """``major.minor`` of an installed package, empty where it is not there."""
        return ".".join(self.packages.get(package, "").split(".")[:2])


def served(named: Path | None, environment: Mapping[str, str]) -> Served:
    """The interpreter that was ``named``, else that of an engine's command on the path, else python3, and its packages.

    Errors: InputError where there is none, or it does not answer.
    """
    python = named if named is not None else interpreter(environment.get("PATH", ""))
    try:
        done = subprocess.run(
            [str(python), "-c", _ASK, *PACKAGES],
            env={name: value for name, value in environment.items() if not name.startswith("TELLER_")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LOOK_S,
            check=False,
        )
        told = json.loads(done.stdout.splitlines()[-1])
        return Served(python, str(told["python"]), {str(name): str(it)[:32] for name, it in told["found"].items()})
    except OSError as error:
        why = (error.strerror or "the system refused it").lower()
    except subprocess.TimeoutExpired:
        why = f"it did not answer within {LOOK_S} s"
    except (ValueError, LookupError, TypeError):
        why = "it does not answer as a Python does"
    raise InputError("The interpreter of the served program", why, "Name it with --python PATH") from None


def interpreter(path: str) -> Path:
    """The Python of the first engine's command on ``path``, else the first python3 there. Errors: InputError."""
    for name in COMMANDS:
        found = shutil.which(name, path=path)
        python = _first_line(Path(found)) if found else None
        if python is not None:
            return python
    python3 = shutil.which("python3", path=path)
    if python3 is None:
        raise InputError(
            "The interpreter of the served program", "no python3 is on the path", "Name it with --python PATH"
        )
    return Path(python3)


def _first_line(script: Path) -> Path | None:
    """The interpreter that a script names; pip writes one whose path is long on the second line, behind ``exec``."""
    try:
        with script.open("rb") as file:
            head = file.read(1024).decode("utf-8", "replace")
    except OSError:
        return None
    named = re.match(r"#!\s*(/\S*python[\d.]*)\s*\n|#!/bin/sh\n'''exec' \"?(/[^\"\n]*python[\d.]*)\"? ", head)
    return Path(named[1] or named[2]) if named else None
