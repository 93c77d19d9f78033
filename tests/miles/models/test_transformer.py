import math

import pytest
import torch

from miles.models.transformer import Transformer, TransformerConfig, initialise, log_probabilities

CONFIG = TransformerConfig(vocab_size=11, hidden_size=32, num_layers=4, seq_length=8)
TOKENS = torch.arange(16).reshape(2, 8) % 11


def fresh(layers=None, seed=1):
    model = Transformer(CONFIG, layers)
    initialise(model, seed)
    return model


def test_stages_one_after_the_other_are_the_whole_model():
    stages = [fresh(range(0, 1)), fresh(range(1, 3)), fresh(range(3, 4))]

    hidden = TOKENS
    for stage in stages:
        hidden = stage(hidden)

    assert torch.equal(hidden, fresh()(TOKENS))


def test_stages_share_out_the_parameters_of_the_whole_model():
    names = [name for each in (range(0, 2), range(2, 4)) for name in fresh(each).state_dict()]

    assert sorted(names) == sorted(fresh().state_dict())


def test_another_seed_gives_another_model():
    assert not torch.equal(fresh(seed=2)(TOKENS), fresh()(TOKENS))


def test_no_token_sees_a_later_one():
    changed = TOKENS.clone()
    changed[:, 5:] = 0

    assert torch.equal(fresh()(changed)[:, :5], fresh()(TOKENS)[:, :5])


def test_log_probabilities_are_of_the_next_token():
    logits = torch.zeros(1, 3, 4)
    logits[0, 0, 2] = 100.0

    found = log_probabilities(logits, torch.tensor([[0, 2, 1]]))

    assert torch.allclose(found, torch.tensor([[0.0, -math.log(4.0)]]))


def test_a_hidden_size_without_whole_heads_is_refused():
    with pytest.raises(ValueError, match="hidden_size must be a multiple of 16, not 20"):
        TransformerConfig(vocab_size=4, hidden_size=20, num_layers=1, seq_length=4)
