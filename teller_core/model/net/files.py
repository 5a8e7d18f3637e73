"""Weights on disk: safetensors, whose header holds the model card. Nothing is ever unpickled."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from teller_core.data.whole import whole
from teller_core.errors import FormatError, InputError

CARD = "card"


def write(path: Path, tensors: Mapping[str, Tensor], card: Mapping[str, Any]) -> None:
    """Write all of it to ``path``, which has either its old content or this one whenever somebody looks."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    made = save(plain, metadata={CARD: json.dumps(card)})
    with whole(path) as file:
        file.write(made)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the card of a file. Raises InputError where there is none, FormatError where it is no model."""
    if not path.is_file():
        raise InputError(f"The model {path.name}", "there is no such file", "Train one: teller model train")
    opened: Any = safe_open  # it has no types
    try:
        with opened(path, framework="pt") as file:
            head: dict[str, str] = file.metadata() or {}
            card = json.loads(head[CARD])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
    except (SafetensorError, KeyError, ValueError, OSError):
        raise FormatError(
            f"The model {path.name}", "it is no file of a model", "Name one that training wrote"
        ) from None
    return tensors, card


def halved(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """In 16 bits, but for ranges of numbers, which reach further, and what is no number with a fraction."""
    return {
        name: tensor.half() if tensor.is_floating_point() and not name.endswith((".low", ".width")) else tensor
        for name, tensor in tensors.items()
    }


def trained(network: torch.nn.Module) -> dict[str, Tensor]:
    """What training changed: all but the frozen weights of a decoder that somebody else trained."""
    frozen = {name for name, each in network.named_parameters() if not each.requires_grad}
    return {name: tensor for name, tensor in network.state_dict().items() if name not in frozen}


def put_into(network: torch.nn.Module, tensors: Mapping[str, Tensor], what: str) -> None:
    """Load what :func:`trained` gave. Raises FormatError where it does not fit."""
    wanted = trained(network)
    wrong = wanted.keys() ^ tensors.keys() or {
        name for name, tensor in wanted.items() if tensor.shape != tensors[name].shape
    }
    if wrong:
        raise FormatError(f"The model {what}", f"{len(wrong)} of its tables do not fit", "Train it again")
    network.load_state_dict({name: tensor.to(wanted[name].dtype) for name, tensor in tensors.items()}, strict=False)
