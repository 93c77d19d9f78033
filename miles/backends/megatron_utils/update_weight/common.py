"""The weights as the weight sync reads them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence

import torch

from miles.utils.pausable_memory import torch_memory_saver


def named_params_and_buffers(
    args: Namespace,
    model: torch.nn.Module | Sequence[torch.nn.Module],
    translate_gpu_to_cpu: bool = False,
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield name and tensor of every parameter, then of every persistent buffer.

    Args:
        args: The run's arguments.
        model: One model, or its chunks in order; of several, names begin with the index.
        translate_gpu_to_cpu: Yield the host copy of a tensor that is paused and has one.
            A paused tensor that has none is yielded as it is: reading it waits for ever.
    """
    chunks = [model] if isinstance(model, torch.nn.Module) else list(model)
    for index, chunk in enumerate(chunks):
        prefix = f"{index}." if len(chunks) > 1 else ""
        for name, tensor in _named_tensors(chunk):
            yield prefix + name, _maybe_get_cpu_backup(tensor) if translate_gpu_to_cpu else tensor


def _named_tensors(chunk: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from chunk.named_parameters()
    persistent = chunk.state_dict(keep_vars=True)
    for name, buffer in chunk.named_buffers():
        if name in persistent:
            yield name, buffer


def _maybe_get_cpu_backup(x: torch.Tensor) -> torch.Tensor:
    """The host copy of a paused tensor if there is one, else the live tensor itself."""
    copy = torch_memory_saver.get_cpu_backup(x)
    return x if copy is None else copy
