import pytest
import torch

from miles.rollout.task import advantages, prompts, rewards


def test_a_response_is_worth_its_share_of_low_tokens():
    responses = torch.tensor([[0, 15, 16, 63], [0, 1, 2, 3], [16, 17, 18, 19]])

    assert rewards(responses, vocab_size=64).tolist() == [0.5, 1.0, 0.0]


def test_a_prompt_comes_eight_times_in_a_row():
    found = prompts(num_samples=20, length=6, vocab_size=50, seed=3)

    assert found.shape == (20, 6)
    assert torch.equal(found[0], found[7])
    assert not torch.equal(found[7], found[8])
    assert torch.equal(found, prompts(num_samples=20, length=6, vocab_size=50, seed=3))


@pytest.mark.parametrize("estimator", ["grpo", "gspo", "reinforce_plus_plus"])
def test_equal_answers_have_no_advantage(estimator):
    assert advantages(estimator, torch.full((16,), 0.5)).tolist() == [0.0] * 16


def test_grpo_compares_the_answers_to_one_prompt_alone():
    easy_and_hard = torch.tensor([1.0] * 7 + [0.0] + [0.0] * 7 + [1.0])

    found = advantages("grpo", easy_and_hard)

    assert found[7] < -2
    assert found[15] > 2
    assert found[0] == pytest.approx(-float(found[8]))


def test_reinforce_plus_plus_compares_all_answers():
    found = advantages("reinforce_plus_plus", torch.tensor([1.0] * 8 + [0.0] * 8))

    assert found.tolist() == pytest.approx([1.0] * 8 + [-1.0] * 8, rel=1e-4)


def test_the_baseline_variant_subtracts_the_mean_of_each_prompt():
    found = advantages("reinforce_plus_plus_baseline", torch.tensor([1.0] * 8 + [0.0] * 8))

    assert found.tolist() == [0.0] * 16
