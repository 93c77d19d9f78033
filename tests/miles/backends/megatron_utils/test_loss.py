import pytest
import torch

from miles.backends.megatron_utils.loss import Batch, policy_loss
from miles.models.transformer import log_probabilities

TOKENS = torch.tensor([[0, 1, 2], [0, 3, 1]])


def batch(logits, rewards, offset=0.0):
    logprobs = log_probabilities(logits, TOKENS)[:, -2:].detach() - offset
    rewards = torch.tensor(rewards)
    return Batch(TOKENS, logprobs, rewards, rewards - rewards.mean())


def test_the_loss_of_an_engine_with_the_same_weights_is_minus_the_reward():
    logits = torch.randn(2, 3, 4)

    found = policy_loss(logits, batch(logits, [1.0, 0.5]))

    assert found.logprob_difference == 0
    assert found.loss == pytest.approx(-0.75)
    assert found.objective == pytest.approx(0.0)


def test_a_step_along_the_gradient_makes_the_better_response_likelier():
    logits = torch.zeros(2, 3, 4, requires_grad=True)

    policy_loss(logits, batch(logits, [1.0, 0.0])).objective.backward()

    stepped = log_probabilities(logits - logits.grad, TOKENS)
    before = log_probabilities(logits, TOKENS)
    assert (stepped[0] > before[0]).all()
    assert (stepped[1] < before[1]).all()


def test_a_good_response_that_is_likelier_than_the_clip_allows_has_no_gradient():
    logits = torch.zeros(2, 3, 4, requires_grad=True)

    policy_loss(logits, batch(logits, [1.0, 0.0], offset=0.5)).objective.backward()

    assert logits.grad[0].abs().max() == 0
    assert logits.grad[1].abs().max() > 0


def test_gspo_weighs_a_response_by_the_mean_of_its_tokens():
    logits = torch.zeros(2, 3, 4)
    samples = batch(logits, [1.0, 1.0])
    samples.logprobs[:, 0] -= 0.1
    samples.logprobs[:, 1] += 0.1

    assert policy_loss(logits, samples, per_sequence=True).loss == pytest.approx(-1.0)
    assert policy_loss(logits, samples).loss == pytest.approx(-1.005, abs=1e-3)
