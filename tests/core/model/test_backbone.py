"""A decoder that somebody else trained: a tiny one by chance, saved to a disk."""

from dataclasses import replace
from pathlib import Path

import pytest

from teller_core.errors import FormatError, InputError
from teller_core.model.judging import judged, load
from teller_core.model.training import WEIGHTS, train
from tests.core.model.making import sheets_of
from tests.core.model.test_training import QUICK, WORK

torch = pytest.importorskip("torch")
pytest.importorskip("peft")


def saved(path: Path, seed: int) -> Path:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=32,
        hidden_size=32,
        intermediate_size=48 + seed,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=512,
    )
    Qwen3ForCausalLM(config).save_pretrained(path)
    return path


def test_a_backbone_learns_little_of_itself_and_is_needed_again(tmp_path: Path) -> None:
    backbone = saved(tmp_path / "decoder", 0)
    work = replace(WORK, backbone=backbone, plan=replace(QUICK, updates=4))
    card = train(work, tmp_path / "made", lambda text: None)
    model = load(tmp_path / "made" / WEIGHTS, backbone=backbone, threads=1)
    names = dict(model.network.named_parameters())
    assert card.backbone and any("lora_A" in name for name in names)
    sheets, _ = sheets_of(10, 1)
    assert len(judged(model, sheets)) == 10
    with pytest.raises(InputError, match="Name that with --backbone"):
        load(tmp_path / "made" / WEIGHTS, threads=1)
    with pytest.raises(FormatError, match="around another one"):
        load(tmp_path / "made" / WEIGHTS, backbone=saved(tmp_path / "other", 8), threads=1)


def test_what_is_kept_holds_nothing_of_the_backbone_itself(tmp_path: Path) -> None:
    from teller_core.model.net.files import read

    backbone = saved(tmp_path / "decoder", 0)
    train(replace(WORK, backbone=backbone, plan=replace(QUICK, updates=1)), tmp_path / "made", lambda text: None)
    kept = [name for name in read(tmp_path / "made" / WEIGHTS)[0] if name.startswith("decoder.")]
    assert kept and all("lora_" in name for name in kept)


def test_a_folder_without_a_decoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model of transformers is there"):
        train(replace(WORK, backbone=tmp_path), tmp_path / "made", lambda text: None)
