"""What can be served, and what the program of an engine is started with."""

from pathlib import Path

import pytest

from teller_core.errors import InputError, UnknownName
from teller_core.lab.load import Target
from teller_core.lab.serving import Setup, command_of

VLLM, TRANSFORMERS = Path("vllm"), Path("transformers")


def command(setup: Setup) -> str:
    return " ".join(command_of(setup, Path(setup.engine), Target(8000, "tiny"), "model"))


def test_each_engine_serves_the_model_on_the_port_of_the_load() -> None:
    assert command(Setup()).startswith("vllm serve ./model ")
    assert command(Setup("transformers")).startswith("transformers serve ./model ")
    assert all("--host 127.0.0.1 --port 8000" in command(Setup(engine)) for engine in ("vllm", "transformers"))


def test_prompts_begin_alike_where_a_cache_can_find_it() -> None:
    assert Setup("vllm").beginning > 0
    assert Setup("transformers").beginning == 0
    assert "--block-size 32" in command(Setup())


def test_a_small_cache_is_asked_for_by_its_blocks() -> None:
    assert "--num-gpu-blocks-override" not in command(Setup())
    assert "--num-gpu-blocks-override" in command(Setup(cache="small"))


def test_steps_are_as_large_as_is_asked_for() -> None:
    assert "--max-num-seqs 8" in command(Setup())
    assert "--max-num-batched-tokens" not in command(Setup())
    assert "--cb-max-batch-tokens 512" in command(Setup("transformers"))


def test_ranks_share_the_model_on_one_machine() -> None:
    assert command(Setup(ranks=2)).endswith("-tp 2")
    assert "-tp" not in command(Setup())


@pytest.mark.parametrize(
    ("setup", "why"),
    [
        ({"engine": "abacus"}, "none of vllm, transformers"),
        ({"model": "gigantic"}, "none of plain, deep, wide"),
        ({"cache": "infinite"}, "none of roomy, small"),
        ({"apart": True}, "is not served so"),
        ({"engine": "transformers", "ranks": 2}, "is not served so"),
        ({"ranks": 3}, "is not served so"),
        ({"engine": "transformers", "cache": "small"}, "is not served so"),
    ],
)
def test_what_there_is_not_is_refused(setup: dict[str, object], why: str) -> None:
    with pytest.raises((InputError, UnknownName), match=why):
        Setup(**setup)  # pyright: ignore[reportArgumentType]  # wrong on purpose
