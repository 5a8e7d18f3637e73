"""A decoder that somebody else trained, on a disk, with LoRA on its attention: the same inputs, the same heads."""

# pyright: reportUnknownMemberType=false
# Of some of torch's functions not all types are known.

import json
import warnings
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from teller_core.errors import InputError, MissingExtra
from teller_core.model.net.network import Network

RANK, ALPHA, DROP = 16, 32, 0.05
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj")
"""As Qwen, Llama, Mistral and Gemma call them; of others all linear layers take part."""


def large(path: Path, symbols: int, words: int) -> Network:
    """A network around the causal language model in the folder ``path``, whose own weights stay as they are.

    Nothing is ever fetched. Raises InputError where there is no model there, MissingExtra without peft.
    """
    if find_spec("peft") is None:
        raise MissingExtra("A backbone", "peft is not installed", "Install teller-mcp[backbone]")
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    if not (path / "config.json").is_file():
        raise InputError(f"--backbone {path.name}", "no model of transformers is there", "Name the folder of one")
    cuda = torch.cuda.is_available()
    try:
        whole: Any = AutoModelForCausalLM.from_pretrained(
            path, local_files_only=True, dtype=torch.bfloat16 if cuda else torch.float32
        )
    except (OSError, ValueError):
        raise InputError(
            f"--backbone {path.name}", "no causal language model can be read from it", "Name the folder of one"
        ) from None
    decoder = whole.get_decoder()
    names = {name.rpartition(".")[2] for name, _ in decoder.named_modules()}
    targets: Any = [name for name in TARGETS if name in names] or "all-linear"
    config = LoraConfig(r=RANK, lora_alpha=ALPHA, lora_dropout=DROP, target_modules=targets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by names of before
        adapted: Any = get_peft_model(decoder, config)
    network = Network(adapted, whole.config.get_text_config().hidden_size, symbols, words)
    network.origin = origin(path)
    return network.to("cuda") if cuda else network


def origin(path: Path) -> str:
    """The hash of a decoder's configuration, and of the names and sizes of its files of weights."""
    config = json.loads((path / "config.json").read_text("utf-8"))
    sizes = sorted((each.name, each.stat().st_size) for each in path.glob("*.safetensors"))
    return sha256(json.dumps([config, sizes], sort_keys=True).encode()).hexdigest()
