"""vLLM's own scheduler, two steps ahead of a worker that is made up: what its CPU build does not do by itself.

The CPU build turns asynchronous scheduling off. So this runs the real ``AsyncScheduler`` on its own, under the recorder, with
a worker that invents tokens: some end an answer (one further step has been scheduled by then), some of the guesses are
rejected, requests are aborted, and there are too few blocks for all.

Run by tests/studies/identity.py with vLLM's Python: scheduler_ahead.py MODEL REQUESTS GUESSES.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false
# It runs in vLLM's environment, which no checker of ours has.

import random
import sys
from collections import deque
from typing import Any

import torch
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

BLOCK, BLOCKS, AHEAD = 16, 66, 2
END = 2
"""The token that ends an answer."""


def main(model: str, many: int, guesses: int) -> None:
    """Serve ``many`` requests, up to ``guesses`` guessed tokens a step."""
    chance = random.Random(3)
    guessing = {"method": "ngram", "num_speculative_tokens": guesses, "prompt_lookup_max": 3} if guesses else None
    config = EngineArgs(
        model=model,
        dtype="float32",
        max_model_len=1024,
        max_num_seqs=8,
        max_num_batched_tokens=128,
        block_size=BLOCK,
        speculative_config=guessing,
        async_scheduling=False,
    ).create_engine_config()
    config.scheduler_config.async_scheduling = True
    config.cache_config.num_gpu_blocks = BLOCKS
    scheduler = AsyncScheduler(
        vllm_config=config,
        kv_cache_config=_cache(),
        structured_output_manager=StructuredOutputManager(config),
        block_size=BLOCK,
        log_stats=True,
    )
    init_none_hash(sha256)
    waiting = [_request(chance, i) for i in range(many)]
    running: deque[Any] = deque()
    while waiting or running or scheduler.has_requests():
        for _ in range(min(len(waiting), chance.randint(0, 3))):
            scheduler.add_request(waiting.pop())
        if scheduler.has_requests():
            running.append(scheduler.schedule())
        if len(running) >= AHEAD or not scheduler.has_requests():
            if chance.random() < 0.01 and scheduler.running:
                scheduler.finish_requests(scheduler.running[-1].request_id, RequestStatus.FINISHED_ABORTED)
            if running:
                decision = running.popleft()
                scheduler.update_from_output(decision, _output(chance, scheduler, decision))


def _cache() -> KVCacheConfig:
    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32)
    return KVCacheConfig(num_blocks=BLOCKS, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])


def _request(chance: random.Random, number: int) -> Request:
    params = SamplingParams(max_tokens=chance.choice((1, 2, 8, 40, 80)), stop_token_ids=[END])
    common = [3 + i for i in range(chance.choice((0, 40, 160)))]
    prompt = common + [chance.randrange(3, 2000) for _ in range(chance.choice((3, 20, 60, 200, 500)))]
    hasher = get_request_block_hasher(BLOCK, sha256)
    return Request(f"ahead-{number:03d}", prompt, params, None, block_hasher=hasher)


def _output(chance: random.Random, scheduler: Any, decision: Any) -> ModelRunnerOutput:
    """A token for every request whose prompt is computed by then, and as many more as guesses are confirmed."""
    names = list(decision.num_scheduled_tokens)
    sampled = []
    for name in names:
        request = scheduler.requests.get(name)
        guessed = len(decision.scheduled_spec_decode_tokens.get(name, ()))
        if request is None or not _yields(decision, name, request):
            sampled.append([])
        else:
            sampled.append([_token(chance) for _ in range(1 + chance.randint(0, guessed))])
    return ModelRunnerOutput(
        req_ids=names,
        req_id_to_index={name: i for i, name in enumerate(names)},
        sampled_token_ids=sampled,
        logprobs=None,
        prompt_logprobs_dict={},
        pooler_output=[],
    )


def _yields(decision: Any, name: str, request: Request) -> bool:
    again = decision.scheduled_cached_reqs
    computed = {new.req_id: new.num_computed_tokens for new in decision.scheduled_new_reqs}
    computed.update(zip(again.req_ids, again.num_computed_tokens, strict=True))
    return computed[name] + decision.num_scheduled_tokens[name] >= request.num_prompt_tokens


def _token(chance: random.Random) -> int:
    return END if chance.random() < 0.03 else chance.randrange(3, 2000)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
