import pytest
import torch

from miles.utils.tensor_bucket import ChecksumMismatchError, pack_tensors, unpack_tensors

TENSORS = [
    ("matrix", torch.arange(6.0).reshape(2, 3)),
    ("half", torch.tensor([1.5, -2.0], dtype=torch.bfloat16)),
    ("scalar", torch.tensor(3)),
    ("empty", torch.empty(0, 4)),
    ("transposed", torch.arange(6.0).reshape(2, 3).T),
]


def test_tensors_come_back_as_they_went():
    back = list(unpack_tensors(pack_tensors(TENSORS)))

    assert [name for name, _ in back] == [name for name, _ in TENSORS]
    for (_, sent), (_, received) in zip(TENSORS, back, strict=True):
        assert received.dtype == sent.dtype
        assert torch.equal(received, sent)


def test_buckets_behind_each_other_are_read_as_one():
    data = pack_tensors(TENSORS[:1]) + pack_tensors([]) + pack_tensors(TENSORS[1:])

    assert [name for name, _ in unpack_tensors(data)] == [name for name, _ in TENSORS]


@pytest.mark.parametrize("position", [-1, -24, -25])
def test_one_wrong_bit_is_noticed_and_the_tensor_named(position):
    data = bytearray(pack_tensors(TENSORS[-1:] + TENSORS[-1:]))
    data[position] ^= 1

    with pytest.raises(ChecksumMismatchError, match="transposed arrived with checksum"):
        list(unpack_tensors(bytes(data)))


def test_a_cut_bucket_is_refused():
    data = pack_tensors(TENSORS)

    with pytest.raises(ValueError, match="transposed"):
        list(unpack_tensors(data[:-3]))
    with pytest.raises(ValueError, match="3 stray bytes"):
        list(unpack_tensors(data + b"abc"))
