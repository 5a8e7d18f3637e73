"""What the network would say next, for whoever decides what may be said: a sheet is read once, and each word once."""

# pyright: reportUnknownMemberType=false
# Of some of torch's functions not all types are known.

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from teller_core.data.table import Float32
from teller_core.model.inputs import Inputs
from teller_core.model.laying import laid
from teller_core.model.net.network import Network


def speaker(network: Network, inputs: Inputs) -> Callable[[Sequence[int]], Float32]:
    """By what ``network`` sees in the one sheet of ``inputs``: from the actions so far (a word, or the number of words plus the
    place of a fact that is cited) to float32 [words + facts]. The actions of one call go on where those of the call before ended.
    """
    reader: list[_Reader] = []

    def score(said: Sequence[int]) -> Float32:
        with torch.inference_mode():
            if not reader:
                reader.append(_Reader(network, inputs))
            return reader[0].scores(said)

    return score


class _Reader:
    """A sheet that was read, the words that were read behind it, and the state behind the last of them."""

    def __init__(self, network: Network, inputs: Inputs) -> None:
        self.network, self.name = network, _name_of_cache()
        batch = laid(inputs)
        rows, _ = network.embedded(batch)
        facts = torch.from_numpy(batch.items["facts"]).to(rows.device)
        self.facts, self.cache, self.read = rows[facts], None, 0
        states = self._states(rows[: int(batch.verdict[0]) + 1])
        self.keys, self.state = network.cited(states[facts]), states[-1]

    def scores(self, said: Sequence[int]) -> Float32:
        network = self.network
        if len(said) > self.read:
            rows = [self._row(int(action)) for action in said[self.read :]]
            self.state, self.read = self._states(torch.stack(rows))[-1], len(said)
        words = network.words.weight[: network.spoken] @ self.state
        cited = self.keys @ network.cite(self.state) / self.keys.shape[1] ** 0.5
        return np.asarray(torch.cat([words, cited]).float().cpu().numpy())

    def _row(self, action: int) -> Tensor:
        spoken = self.network.spoken
        return self.network.words.weight[action] if action < spoken else self.facts[action - spoken]

    def _states(self, rows: Tensor) -> Tensor:
        """[t, hidden]: behind all that was read before."""
        network = self.network
        more: dict[str, Any] = {} if self.cache is None else {self.name: self.cache}
        given = rows.to(network.decoder.dtype).unsqueeze(0)
        found = network.decoder(inputs_embeds=given, use_cache=True, **more)
        self.cache = getattr(found, self.name)
        return network.after(found.last_hidden_state[0].to(rows.dtype))


def _name_of_cache() -> str:
    """transformers renamed it within its fifth version."""
    from transformers.modeling_outputs import BaseModelOutputWithPast

    return "cache" if "cache" in BaseModelOutputWithPast.__dataclass_fields__ else "past_key_values"
