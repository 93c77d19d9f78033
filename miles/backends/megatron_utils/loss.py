"""The policy-gradient loss.

Axes: B samples of this replica, T tokens, R response tokens, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from miles.models.transformer import log_probabilities

_CLIP = 0.2


@dataclass(frozen=True)
class Batch:
    """One replica's share of a rollout.

    Attributes:
        tokens: Token ids [B, T].
        logprobs: The engine's log-probabilities of the responses [B, R].
        rewards: [B].
        advantages: [B].
    """

    tokens: Tensor
    logprobs: Tensor
    rewards: Tensor
    advantages: Tensor


@dataclass(frozen=True)
class PolicyLoss:
    """What one pass found.

    Attributes:
        objective: Clipped surrogate of the advantages; its gradient trains.
        loss: The same surrogate of the plain rewards, which falls as the policy improves
            (that of group-relative advantages is zero on average by construction).
        logprob_difference: Mean absolute difference between the trainer's and the
            engine's log-probabilities: about 1e-7 where both hold the same weights.
    """

    objective: Tensor
    loss: Tensor
    logprob_difference: Tensor


def policy_loss(logits: Tensor, batch: Batch, per_sequence: bool = False) -> PolicyLoss:
    """PPO's clipped surrogate for samples that the engine drew.

    Args:
        logits: [B, T, V].
        batch: The samples behind the logits.
        per_sequence: Weigh a response by the mean ratio of its tokens (GSPO), not each
            token by its own.
    """
    logprobs = log_probabilities(logits, batch.tokens)[:, -batch.logprobs.shape[1] :]
    difference = logprobs - batch.logprobs
    ratio = (difference.mean(dim=1, keepdim=True) if per_sequence else difference).exp()
    clipped = ratio.clamp(1 - _CLIP, 1 + _CLIP)
    advantages = batch.advantages.unsqueeze(1)
    return PolicyLoss(
        objective=-(ratio * advantages).minimum(clipped * advantages).mean(),
        loss=-(ratio * batch.rewards.unsqueeze(1)).mean().detach(),
        logprob_difference=difference.abs().mean().detach(),
    )
