"""A decoder that somebody else trained: a tiny one by chance, saved to a disk."""

from dataclasses import replace
from pathlib import Path

import pytest

from teller_core.errors import FormatError, InputError
from teller_core.model.judging import judged, load
from teller_core.model.training import WEIGHTS, train
from tests.core.model.making import decoder, sheets_of
from tests.core.model.test_training import QUICK, WORK

pytest.importorskip("torch")
pytest.importorskip("peft")


def test_a_backbone_learns_little_of_itself_and_is_needed_again(tmp_path: Path) -> None:
    backbone = decoder(tmp_path / "decoder")
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
        load(tmp_path / "made" / WEIGHTS, backbone=decoder(tmp_path / "other", intermediate_size=56), threads=1)


def test_what_is_kept_holds_nothing_of_the_backbone_itself(tmp_path: Path) -> None:
    from teller_core.model.net.files import read

    backbone = decoder(tmp_path / "decoder")
    train(replace(WORK, backbone=backbone, plan=replace(QUICK, updates=1)), tmp_path / "made", lambda text: None)
    kept = [name for name in read(tmp_path / "made" / WEIGHTS)[0] if name.startswith("decoder.")]
    assert kept and all("lora_" in name for name in kept)


def test_a_folder_without_a_decoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model of transformers is there"):
        train(replace(WORK, backbone=tmp_path), tmp_path / "made", lambda text: None)
