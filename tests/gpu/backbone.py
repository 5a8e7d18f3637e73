"""What only a GPU can tell of the model around a large decoder: one command, under eight minutes, a JSON line a check.

    python tests/gpu/backbone.py [--smoke] [--decoder FOLDER]

It needs torch with CUDA, transformers, peft and what the project needs. Without ``--decoder`` it makes one of the shape of
Qwen3-0.6B with weights by chance: speed and memory are those of the real one, and that the loss falls shows that it learns, not
how well. ``--smoke`` does the same in seconds on a processor with a tiny decoder. The exit status is 1 if a check failed.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from teller_core.model.card import Reads  # noqa: E402
from teller_core.model.judging import judged, load  # noqa: E402
from teller_core.model.laying import lengths  # noqa: E402
from teller_core.model.options import Plan  # noqa: E402
from teller_core.model.training import WEIGHTS, Work, train  # noqa: E402
from tests.core.model.making import SYMBOLS, VOCABULARY, decoder, lives_of, sheets_of  # noqa: E402

SMOKE = "--smoke" in sys.argv
LARGE = {
    "vocab_size": 1024,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 4096,
}
"""The sizes of Qwen3-0.6B, but for its vocabulary: no token is read."""
FAILED: list[str] = []


def check(name: str, function: Callable[[], dict[str, Any]]) -> None:
    """Run one check and print what it found."""
    began = time.perf_counter()
    found = function()
    if not found.pop("ok"):
        FAILED.append(name)
    print(  # noqa: T201
        json.dumps({"check": name, "ok": name not in FAILED, **found, "took_s": round(time.perf_counter() - began, 2)})
    )


def backbone(folder: Path) -> Path:
    """The folder of the decoder that was named, or of one by chance."""
    if "--decoder" in sys.argv:
        return Path(sys.argv[sys.argv.index("--decoder") + 1])
    return decoder(folder, **({} if SMOKE else LARGE))


def main() -> int:
    """Train, be ended, go on, load and judge."""
    cuda = torch.cuda.is_available()
    if not cuda and not SMOKE:
        print(json.dumps({"check": "a GPU", "ok": False, "error": "torch finds none"}))  # noqa: T201
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        lives = lives_of(6, 40 if SMOKE else 400, words=True)
        tokens = sum(int(lengths(life.inputs).sum()) for life in lives)
        plan = Plan(
            tokens=2048 if SMOKE else 16_384, updates=6 if SMOKE else 120, look=3 if SMOKE else 20, warm=3, rate=1e-3
        )
        work = Work(lives, Reads(VOCABULARY, SYMBOLS, "said", 5), plan=plan, backbone=backbone(folder / "decoder"))
        losses: list[str] = []

        def trained() -> dict[str, Any]:
            card = train(work, folder / "made", losses.append)
            memory = torch.cuda.max_memory_allocated() / 1e9 if cuda else 0.0
            speed = plan.tokens * card.updates / card.seconds
            found = {"updates": card.updates, "positions_per_s": round(speed), "memory_gb": round(memory, 2)}
            top = card.scores.get("cause of a struck request: top-1", float("nan"))
            return {"ok": SMOKE or top > 0.8, **found, "positions": tokens, "top_1": top, "said": losses}

        def goes_on() -> dict[str, Any]:
            def stop(text: str) -> None:
                raise KeyboardInterrupt

            short = replace(work, plan=replace(plan, updates=4, look=3, save_s=0.0))
            try:
                train(short, folder / "again", stop)
            except KeyboardInterrupt:
                card = train(short, folder / "again", losses.append)
                return {"ok": card.updates == 4}
            return {"ok": False}

        def judges() -> dict[str, Any]:
            model = load(folder / "made" / WEIGHTS, backbone=work.backbone)
            sheets, wanted = sheets_of(200, 99)
            judged(model, sheets)
            began = time.perf_counter()
            said = judged(model, sheets)
            took = time.perf_counter() - began
            right = float(((said.abnormal > 0.5) == (wanted > 0)).mean())
            return {"ok": SMOKE or right > 0.9, "abnormal_right": right, "sheets_per_s": round(200 / took)}

        check("trains around a decoder", trained)
        check("goes on where it was ended", goes_on)
        check("judges", judges)
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
