"""Adam or plain gradient descent on flat buffers."""

from __future__ import annotations

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
from torch import Tensor

from miles.backends.megatron_utils.param_and_grad_buffer import ParamAndGradBuffer
from miles.utils.pausable_memory import torch_memory_saver
from miles.utils.reloadable_process_group import ReloadableProcessGroup

_BETAS = (0.9, 0.95)
_EPSILON = 1e-8


class FlatOptimizer:
    """Moves the parameters of one stage, alike on all its replicas.

    With `--use-distributed-optimizer` each replica keeps the state of its own stretch of
    the buffer, moves that, and sends it to the others.

    Args:
        args: The run's flags.
        buffer: Parameters and gradients; may be empty.
        replicas: The stage's data-parallel group.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        buffer: ParamAndGradBuffer,
        replicas: ReloadableProcessGroup,
    ) -> None:
        self._buffer = buffer
        self._replicas = replicas
        self._is_sharded: bool = args.use_distributed_optimizer
        mine = self._shards(buffer.param_data)[self._shard_index()]
        self._rule = _rule(args, mine)

    def zero_grad(self) -> None:
        """Set all gradients to zero, in place."""
        self._buffer.zero_grad()

    @torch.no_grad()
    def step(self) -> None:
        """Average the gradients over the replicas and move the parameters along them."""
        if not self._buffer.names:
            return
        gradients = self._buffer.grad_data
        dist.all_reduce(gradients, group=self._replicas.group)
        gradients /= len(self._replicas.ranks)
        shards = self._shards(self._buffer.param_data)
        index = self._shard_index()
        self._rule.move(shards[index], self._shards(gradients)[index])
        if self._is_sharded:
            for owner, shard in zip(self._replicas.ranks, shards, strict=True):
                dist.broadcast(shard, owner, group=self._replicas.group)

    def _shards(self, flat: Tensor) -> tuple[Tensor, ...]:
        return flat.tensor_split(len(self._replicas.ranks) if self._is_sharded else 1)

    def _shard_index(self) -> int:
        return self._replicas.ranks.index(dist.get_rank()) if self._is_sharded else 0


def _rule(args: argparse.Namespace, parameters: Tensor) -> Adam | GradientDescent:
    if args.optimizer == "sgd":
        return GradientDescent(args.lr)
    if args.stream_optimizer_state_to_disk and parameters.numel():
        state = [_zeros_on_disk(parameters, args.offload_train_disk_dir) for _ in range(2)]
    else:
        state = [torch.zeros_like(parameters) for _ in range(2)]
    return Adam(args.lr, *state)


def _zeros_on_disk(like: Tensor, folder: str) -> Tensor:
    """A tensor that is a file without a name: paged in by each step, gone with the process."""
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder) as file, torch_memory_saver.disable():
        file.truncate(like.nbytes)
        return torch.from_file(file.name, shared=True, size=like.numel(), dtype=like.dtype)


class GradientDescent:
    """Steps of `learning_rate` times the gradient."""

    def __init__(self, learning_rate: float) -> None:
        self._learning_rate = learning_rate

    def move(self, parameters: Tensor, gradients: Tensor) -> None:
        """Move flat `parameters` [N] in place."""
        parameters.add_(gradients, alpha=-self._learning_rate)


class Adam:
    """Adam without weight decay.

    torch's own is not used: its first call imports torch's compiler, seconds a process.

    Args:
        learning_rate: Step size.
        mean: Flat [N], zeros; kept and changed in place.
        variance: The same.
    """

    def __init__(self, learning_rate: float, mean: Tensor, variance: Tensor) -> None:
        self._learning_rate = learning_rate
        self._mean = mean
        self._variance = variance
        self._num_steps = 0

    def move(self, parameters: Tensor, gradients: Tensor) -> None:
        """Move flat `parameters` [N] in place."""
        self._num_steps += 1
        first, second = _BETAS
        self._mean.lerp_(gradients, 1 - first)
        self._variance.mul_(second).addcmul_(gradients, gradients, value=1 - second)
        corrected = (self._variance / (1 - second**self._num_steps)).sqrt_().add_(_EPSILON)
        rate = self._learning_rate / (1 - first**self._num_steps)
        parameters.addcdiv_(self._mean, corrected, value=-rate)
