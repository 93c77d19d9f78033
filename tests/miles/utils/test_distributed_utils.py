from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from miles.utils.distributed_utils import destroy_gloo_group, get_gloo_group, init_gloo_group


@pytest.fixture
def default_group():
    dist.init_process_group(
        "gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timedelta(minutes=1)
    )
    yield
    destroy_gloo_group()
    dist.destroy_process_group()


def test_there_is_no_group_before_it_is_made():
    with pytest.raises(RuntimeError, match=r"init_gloo_group\(\)"):
        get_gloo_group()


def test_the_group_is_made_once_and_works(default_group):
    group = init_gloo_group()
    dist.barrier(group)

    assert init_gloo_group() is group
    assert get_gloo_group() is group


def test_the_group_waits_30_minutes_whatever_the_default_group_was_given(default_group):
    options = init_gloo_group()._get_backend(torch.device("cpu")).options

    assert options._timeout == timedelta(minutes=30)


def test_a_destroyed_group_can_be_made_again(default_group):
    first = init_gloo_group()
    destroy_gloo_group()
    destroy_gloo_group()
    with pytest.raises(RuntimeError, match="there is no gloo group"):
        get_gloo_group()

    assert init_gloo_group() is not first
