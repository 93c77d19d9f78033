"""Gets rollouts from the engines and puts the engines' memory to sleep and up again."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from miles.backends.sglang_utils.sglang_engine import SGLangEngine
from miles.rollout import task


@dataclass(frozen=True)
class Rollout:
    """Samples of one rollout step.

    Axes: B samples, P prompt tokens, R response tokens.

    Attributes:
        tokens: Token ids [B, P + R], int64.
        logprobs: Log-probabilities of the response tokens as the engine saw them [B, R].
        rewards: [B].
        weight_version: Version of the weights that made it.
    """

    tokens: Tensor
    logprobs: Tensor
    rewards: Tensor
    weight_version: int


def engines_keep_weights(args: argparse.Namespace) -> bool:
    """Whether the engines still have their weights when they are synced again.

    They give them up with `--offload-rollout`, unless they are told to keep a copy or have
    to generate again before the next sync.
    """
    return not args.offload_rollout or args.lora_base_cpu_backup or args.update_weights_interval > 1


class RolloutManager:
    """Speaks to all engines of a run.

    Attributes:
        engines: In ascending order of their index, at least one.
    """

    def __init__(self, args: argparse.Namespace, engines: list[SGLangEngine]) -> None:
        self._args = args
        self.engines = engines

    def generate(self, rollout_id: int) -> Rollout:
        """Sample one global batch, shared out over the engines.

        Raises:
            EngineError: An engine is gone or refused.
        """
        args = self._args
        seed = args.seed * 1_000_003 + rollout_id
        prompt_length = args.seq_length // 2
        prompts = task.prompts(args.global_batch_size, prompt_length, args.vocab_size, seed)
        tokens, logprobs, versions = [], [], set()
        for engine, share in zip(
            self.engines, prompts.tensor_split(len(self.engines)), strict=True
        ):
            reply = engine.generate(
                share.tolist(), args.seq_length - prompt_length, seed + 7919 * engine.index
            )
            tokens += reply["tokens"]
            logprobs += reply["logprobs"]
            versions.add(reply["weight_version"])
        if len(versions) != 1:
            raise RuntimeError(f"engines served different weights: versions {sorted(versions)}")
        all_tokens = torch.tensor(tokens)
        rewards = task.rewards(all_tokens[:, prompt_length:], args.vocab_size)
        return Rollout(all_tokens, torch.tensor(logprobs), rewards, versions.pop())

    def offload(self) -> None:
        """Free the engines' memory, with a host copy where they need one."""
        for engine in self.engines:
            engine.release_memory_occupation(keep_on_host=engines_keep_weights(self._args))

    def onload(self) -> None:
        """Give the engines their memory back."""
        for engine in self.engines:
            engine.resume_memory_occupation()


def random_rollout(args: argparse.Namespace, rollout_id: int) -> Rollout:
    """A rollout of uniformly drawn tokens, for training without engines.

    The first time the trainer's own policy is far from uniform, the clipped loss says so.
    """
    generator = torch.Generator().manual_seed(args.seed * 1_000_003 + rollout_id)
    shape = (args.global_batch_size, args.seq_length)
    tokens = torch.randint(args.vocab_size, shape, generator=generator)
    num_new = args.seq_length - args.seq_length // 2
    logprobs = torch.full((args.global_batch_size, num_new), -math.log(args.vocab_size))
    return Rollout(tokens, logprobs, task.rewards(tokens[:, -num_new:], args.vocab_size), 0)
