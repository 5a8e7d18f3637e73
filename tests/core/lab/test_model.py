"""The small model is the same wherever it is made."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

from teller_core.errors import UnknownName
from teller_core.lab.model import SHAPES, tiny_model
from teller_core.lab.words import corpus, vocabulary

pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")


def _hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_the_same_in_two_places_and_made_once(tmp_path: Path, name: str) -> None:
    first, second = tiny_model(tmp_path / "a", name), tiny_model(tmp_path / "b", name)
    assert _hashes(first) == _hashes(second)
    made = (first / "model.safetensors").stat().st_mtime_ns
    assert (tiny_model(tmp_path / "a", name) / "model.safetensors").stat().st_mtime_ns == made
    assert [path.name for path in (tmp_path / "a").iterdir()] == [first.name]


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_small_and_two_ranks_can_share_it(tmp_path: Path, name: str) -> None:
    folder = tiny_model(tmp_path, name)
    config = json.loads((folder / "config.json").read_text())
    assert (folder / "model.safetensors").stat().st_size < 25e6
    assert config["num_key_value_heads"] % 2 == 0
    assert config["num_attention_heads"] % config["num_key_value_heads"] == 0
    assert config["hidden_size"] == 64 * config["num_attention_heads"]


def test_a_model_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="none of plain, deep, wide"):
        tiny_model(tmp_path, "gigantic")


def test_making_it_loads_no_torch(tmp_path: Path) -> None:
    import subprocess

    code = "import sys\nfrom pathlib import Path\nfrom teller_core.lab.model import tiny_model\n"
    code += f"tiny_model(Path({str(tmp_path)!r}))\nprint('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_its_end_token_cannot_win_so_lengths_are_as_asked(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    folder = tiny_model(tmp_path)
    ends = json.loads((folder / "config.json").read_text())["eos_token_id"]
    assert not load_file(folder / "model.safetensors")["lm_head.weight"][ends].any()


def test_words_and_corpus_do_not_depend_on_the_run() -> None:
    assert vocabulary() == vocabulary()
    assert len(set(vocabulary())) == 2500
    assert next(corpus()) == next(corpus())
