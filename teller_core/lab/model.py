"""Small Llamas with random weights and a tokenizer trained here: services to measure, without a download.

Written with numpy alone, so making it costs no import of torch. The weights of the end-of-text token are zero: greedy
decoding never ends early, so a request has exactly the length that it asks for.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from teller_core.errors import MissingExtra, UnknownName
from teller_core.lab.words import corpus

VOCABULARY, POSITIONS = 2048, 8192
SPECIAL = ["<unk>", "<s>", "</s>"]
VERSION = "tiny-llama-2"


@dataclass(frozen=True)
class Shape:
    """``heads`` divides ``hidden``, ``key_heads`` divides ``heads``; tensor parallelism divides ``key_heads`` in turn."""

    hidden: int
    inner: int
    heads: int
    key_heads: int
    layers: int


SHAPES: Mapping[str, Shape] = {
    "plain": Shape(hidden=384, inner=1152, heads=6, key_heads=2, layers=2),
    "deep": Shape(hidden=256, inner=768, heads=4, key_heads=2, layers=6),
    "wide": Shape(hidden=512, inner=768, heads=8, key_heads=2, layers=2),
}
"""About 5 million parameters each, and heads of 64, which every kernel of attention knows."""


def tiny_model(folder: Path, name: str = "plain") -> Path:
    """The folder of the model of SHAPES ``name`` inside ``folder``, made there the first time.

    Raises MissingExtra without the lab extra, UnknownName for a shape that is not there.
    """
    if name not in SHAPES:
        raise UnknownName("The model", "it is none of " + ", ".join(SHAPES), "Name one of these")
    made = folder / f"{VERSION}-{name}"
    if not (made / "config.json").exists():
        hidden = folder / f".{made.name}"
        hidden.mkdir(parents=True, exist_ok=True)
        _make(hidden, SHAPES[name])
        hidden.rename(made)
    return made


def _make(folder: Path, shape: Shape) -> None:
    try:
        import safetensors.numpy as tensors  # only the lab extra has it
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    except ImportError:
        raise MissingExtra(
            "The demo's service", "safetensors or tokenizers is missing", "Install teller-mcp[lab]"
        ) from None
    made: Any = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(corpus(), trainer)
    made.save(str(folder / "tokenizer.json"))
    writer: Any = tensors  # its types are partial
    writer.save_file(dict(_weights(shape)), str(folder / "model.safetensors"), {"format": "pt"})
    for name, content in _configs(shape).items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n")


def _weights(shape: Shape) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    chance = np.random.default_rng(0)

    def normal(*size: int) -> npt.NDArray[np.float32]:
        return chance.normal(0.0, 0.02, size).astype(np.float32)

    hidden, inner = shape.hidden, shape.inner
    keys = hidden * shape.key_heads // shape.heads
    yield "model.embed_tokens.weight", normal(VOCABULARY, hidden)
    for layer in range(shape.layers):
        name = f"model.layers.{layer}."
        for part, size in (
            ("q", (hidden, hidden)),
            ("k", (keys, hidden)),
            ("v", (keys, hidden)),
            ("o", (hidden, hidden)),
        ):
            yield f"{name}self_attn.{part}_proj.weight", normal(*size)
        for part, size in (("gate", (inner, hidden)), ("up", (inner, hidden)), ("down", (hidden, inner))):
            yield f"{name}mlp.{part}_proj.weight", normal(*size)
        for part in ("input", "post_attention"):
            yield f"{name}{part}_layernorm.weight", np.ones(hidden, np.float32)
    yield "model.norm.weight", np.ones(hidden, np.float32)
    head = normal(VOCABULARY, hidden)
    head[: len(SPECIAL)] = 0.0
    yield "lm_head.weight", head


def _configs(shape: Shape) -> dict[str, dict[str, Any]]:
    ends = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    return {
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "pad_token": "</s>",
            "model_max_length": POSITIONS,
        },
        "generation_config.json": {**ends, "max_new_tokens": 64, "do_sample": False},
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": VOCABULARY,
            "hidden_size": shape.hidden,
            "intermediate_size": shape.inner,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.key_heads,
            "max_position_embeddings": POSITIONS,
            "tie_word_embeddings": False,
            "dtype": "float32",
            **ends,
        },
    }
