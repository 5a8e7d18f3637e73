"""The processes that are asked, and what their windows hold. ``run.py`` puts the checkout on the path before this is imported."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from teller_core.collect.native.variables import injection
from teller_core.ingest.recorder.cupti_file import Blocks, read_blocks

HERE = Path(__file__).resolve().parent
Answer = dict[str, Any]
OUT = os.environ.get("OUT")
SMOKE = "--smoke" in sys.argv
TOKENS = 4 if SMOKE else 16


class Worker:
    """A process of ``worker.py``: one question, one answer. One that does not answer in time is killed and started anew."""

    def __init__(self, folder: Path, injected: bool) -> None:
        self.cap, self.injected = folder, injected
        folder.mkdir(parents=True)
        self.start()

    @staticmethod
    def variables(cap: Path, built: Path) -> dict[str, str]:
        """What puts the library into a process. LAYOUT may name a layout made elsewhere, where cupti-python is missing."""
        added = injection(cap, {}, built)
        if added.missing:
            print(json.dumps({"missing": dict(added.missing)}), flush=True)  # noqa: T201
        found = {
            **added.variables,
            "TELLER_CAPTURE_DIR": str(cap),
            "TELLER_INJECT_LOOK_MS": "5",
            "TELLER_INJECT_WINDOWS": "5000",
        }
        if "cupti" in added.missing and "NVTX_INJECTION64_PATH" in added.variables and os.environ.get("LAYOUT"):
            found |= {
                "CUDA_INJECTION64_PATH": found["NVTX_INJECTION64_PATH"],
                "TELLER_INJECT_LAYOUT": os.environ["LAYOUT"],
            }
        return found

    def start(self) -> None:
        variables = dict(os.environ, OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
        for name in ("NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "TELLER_CAPTURE_DIR"):
            variables.pop(name, None)
        if self.injected:
            variables |= self.variables(self.cap, self.cap.parent / "built")
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), *sys.argv[2:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=variables,
        )

    def ask(self, timeout: float = 60, **question: Any) -> Answer:
        """The answer. Raises RuntimeError for an error of the worker's and TimeoutError where none comes."""
        if self.process.poll() is not None:
            self.start()
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            self.process.send_signal(signal.SIGUSR1)  # shows where its threads stand
            time.sleep(1)
            self.process.kill()
            self.process.wait()
            raise TimeoutError(f"no answer to {question['do']} in {timeout} s")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"it ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def blocks(self, answer: Answer) -> Blocks:
        """The file of the window of ``answer``."""
        return read_blocks(self.cap / answer["file"])


def kernels(blocks: Blocks) -> tuple[Counter[str], int]:
    """Counts by name, and summed ns, straight from the records."""
    rows = blocks.rows.get("kernel")
    if rows is None:
        return Counter(), 0
    names = [blocks.texts[text] for text in rows["name"].tolist()]
    return Counter(names), int((rows["end"] - rows["start"]).sum())


def keep(worker: Worker, answer: Answer, name: str) -> None:
    """Leave the file of a window among the artifacts."""
    if OUT:
        shutil.copy(worker.cap / answer["file"], Path(OUT) / name)


def took_ms(blocks: Blocks, what: str) -> float:
    """ms that the opening or the closing of a window took, by its own word."""
    begin, end = (blocks.footer or {}).get(what, [0, 0])
    return round((end - begin) / 1e6, 2)
