from argparse import Namespace

import pytest
import torch

from miles.backends.megatron_utils.update_weight.hf_weight_iterator_direct import (
    HfWeightIteratorDirect,
)

WEIGHTS = {
    "a.weight": torch.ones(4),
    "b.base_layer.weight": torch.ones(2, 2),
    "b.lora_A": torch.tensor([[1.0, 2.0]]),
    "b.lora_B": torch.tensor([[3.0], [0.0]]),
}


def iterator(buffer_bytes=1000, rank=1, merges=False):
    return HfWeightIteratorDirect(
        Namespace(
            update_weight_buffer_size=buffer_bytes,
            lora_rank=rank,
            lora_alpha=2.0,
            lora_adapter_path=None,
            lora_train_only=merges,
        )
    )


def names(chunks):
    return [[name for name, _ in chunk] for chunk in chunks]


@pytest.mark.parametrize(
    ("buffer_bytes", "sizes"), [(32, [2, 2]), (31, [1, 2, 1]), (1, [1, 1, 1, 1]), (64, [4])]
)
def test_a_chunk_fits_the_buffer_or_is_one_tensor(buffer_bytes, sizes):
    chunks = iterator(buffer_bytes, rank=0).get_hf_weight_chunks(WEIGHTS)

    assert [len(chunk) for chunk in chunks] == sizes


def test_adapters_that_the_flags_know_travel_apart():
    known = iterator()

    assert names(known.get_hf_weight_chunks(WEIGHTS)) == [["a.weight", "b.weight"]]
    assert names(known.get_hf_weight_chunks(WEIGHTS, adapters=True)) == [["b.lora_A", "b.lora_B"]]


def test_adapters_that_the_flags_do_not_know_are_weights_like_any_other():
    chunks = iterator(rank=0).get_hf_weight_chunks(WEIGHTS)

    assert names(chunks) == [["a.weight", "b.weight", "b.lora_A", "b.lora_B"]]


def test_lora_for_training_alone_is_merged_into_the_base():
    ((_, (name, merged)),) = iterator(merges=True).get_hf_weight_chunks(WEIGHTS)

    assert name == "b.weight"
    assert merged.tolist() == [[7.0, 13.0], [1.0, 1.0]]
