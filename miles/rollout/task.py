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


def advantages(estimator: str, rewards: Tensor) -> Tensor:
    """How much better than others each response is, in deviations.

    Args:
        estimator: `grpo` and `gspo` compare the answers to one prompt;
            `reinforce_plus_plus` all answers; `reinforce_plus_plus_baseline` subtracts the
            mean of one prompt's answers and scales by the deviation of all.
        rewards: [B], answers to one prompt next to each other.

    Returns:
        [B]; 0 where all that are compared are worth the same.
    """
    if estimator == "reinforce_plus_plus":
        return _deviations(rewards)
    groups = torch.split(rewards, SAMPLES_PER_PROMPT)
    if estimator == "reinforce_plus_plus_baseline":
        return _deviations(torch.cat([group - group.mean() for group in groups]))
    return torch.cat([_deviations(group) for group in groups])


def _deviations(values: Tensor) -> Tensor:
    return (values - values.mean()) / (values.std(correction=0) + 1e-6)
