"""The task that the model learns: answer in low tokens.

A prompt is random; a response is worth the share of its tokens in the first quarter of
the vocabulary. A fresh model scores about 0.25, a perfect one 1.0, and a few rollouts show
the difference, so a run proves that learning and weight sync work.

Axes: B samples, P prompt tokens, R response tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

SAMPLES_PER_PROMPT = 8


def prompts(num_samples: int, length: int, vocab_size: int, seed: int) -> Tensor:
    """Random prompts, each `SAMPLES_PER_PROMPT` times in a row.

    Returns:
        Token ids [num_samples, length]; the last prompt may come fewer times.
    """
    generator = torch.Generator().manual_seed(seed)
    num_prompts = -(-num_samples // SAMPLES_PER_PROMPT)
    distinct = torch.randint(vocab_size, (num_prompts, length), generator=generator)
    return distinct.repeat_interleave(SAMPLES_PER_PROMPT, dim=0)[:num_samples]


def rewards(responses: Tensor, vocab_size: int) -> Tensor:
    """What each response is worth, 0 to 1.

    Args:
        responses: Token ids [B, R].
        vocab_size: Tokens in the vocabulary.

    Returns:
        [B], float32.
    """
    return (responses < vocab_size // 4).float().mean(dim=1)


def group_advantages(rewards: Tensor) -> Tensor:
    """GRPO: how much better than the other answers to the same prompt, in deviations.

    Args:
        rewards: [B], answers to one prompt next to each other.

    Returns:
        [B]; 0 where all answers to a prompt are worth the same.
    """
    parts = []
    for group in torch.split(rewards, SAMPLES_PER_PROMPT):
        deviation = group.std(correction=0)
        parts.append((group - group.mean()) / (deviation + 1e-6))
    return torch.cat(parts)
