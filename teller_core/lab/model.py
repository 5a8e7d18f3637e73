"""A small Llama with random weights and a tokenizer trained here: a service to measure, without a download.

Written with numpy alone, so making it costs no import of torch. The weights of the end-of-text token are zero: greedy
decoding never ends early, so a request has exactly the length that it asks for.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from teller_core.errors import MissingExtra
from teller_core.lab.words import corpus

HIDDEN, HEADS, KEY_HEADS, LAYERS, VOCABULARY, POSITIONS = 384, 6, 3, 2, 2048, 8192
INNER = 3 * HIDDEN
SPECIAL = ["<unk>", "<s>", "</s>"]
VERSION = "tiny-llama-1"


def tiny_model(folder: Path, key_heads: int = KEY_HEADS) -> Path:
    """The folder of the model inside ``folder``, made there the first time. Raises MissingExtra without the lab extra.

    ``key_heads`` divides HEADS; tensor parallelism divides it in turn.
    """
    made = folder / (VERSION if key_heads == KEY_HEADS else f"{VERSION}-{key_heads}")
    if not (made / "config.json").exists():
        hidden = folder / f".{made.name}"
        hidden.mkdir(parents=True, exist_ok=True)
        _make(hidden, key_heads)
        hidden.rename(made)
    return made


def _make(folder: Path, key_heads: int) -> None:
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
    writer.save_file(dict(_weights(key_heads)), str(folder / "model.safetensors"), {"format": "pt"})
    for name, content in _configs(key_heads).items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n")


def _weights(key_heads: int) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    chance = np.random.default_rng(0)

    def normal(*shape: int) -> npt.NDArray[np.float32]:
        return chance.normal(0.0, 0.02, shape).astype(np.float32)

    keys = HIDDEN * key_heads // HEADS
    yield "model.embed_tokens.weight", normal(VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        name = f"model.layers.{layer}."
        for part, shape in (
            ("q", (HIDDEN, HIDDEN)),
            ("k", (keys, HIDDEN)),
            ("v", (keys, HIDDEN)),
            ("o", (HIDDEN, HIDDEN)),
        ):
            yield f"{name}self_attn.{part}_proj.weight", normal(*shape)
        for part, shape in (("gate", (INNER, HIDDEN)), ("up", (INNER, HIDDEN)), ("down", (HIDDEN, INNER))):
            yield f"{name}mlp.{part}_proj.weight", normal(*shape)
        for part in ("input", "post_attention"):
            yield f"{name}{part}_layernorm.weight", np.ones(HIDDEN, np.float32)
    yield "model.norm.weight", np.ones(HIDDEN, np.float32)
    head = normal(VOCABULARY, HIDDEN)
    head[: len(SPECIAL)] = 0.0
    yield "lm_head.weight", head


def _configs(key_heads: int) -> dict[str, dict[str, Any]]:
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
            "hidden_size": HIDDEN,
            "intermediate_size": INNER,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": key_heads,
            "max_position_embeddings": POSITIONS,
            "tie_word_embeddings": False,
            "dtype": "float32",
            **ends,
        },
    }
