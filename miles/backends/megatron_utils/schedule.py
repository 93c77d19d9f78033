"""One forward and backward pass through the pipeline.

Axes: B sequences of this replica, T tokens, H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from miles.backends.megatron_utils.parallel_state import ParallelState
from miles.models.transformer import Transformer


def forward_backward(
    model: Transformer,
    tokens: Tensor,
    loss_function: Callable[[Tensor], Tensor],
    state: ParallelState,
) -> None:
    """Leave the gradients of one batch in the parameters of every stage.

    Args:
        model: This rank's stage.
        tokens: Token ids [B, T], the same on all stages of a pipeline.
        loss_function: Logits to a scalar; called on the last stage alone.
        state: Where this rank stands.
    """
    inputs = tokens if model.pre_process else _received_hidden(model, tokens, state)
    outputs = model(inputs)
    if model.post_process:
        torch.autograd.backward(loss_function(outputs))
    else:
        gradient = torch.empty_like(outputs)
        dist.send(outputs.detach(), _neighbour(state, 1), group=state.pipeline.group)
        dist.recv(gradient, _neighbour(state, 1), group=state.pipeline.group)
        # A first stage that is frozen throughout has nothing to compute.
        if outputs.requires_grad:
            torch.autograd.backward(outputs, gradient)
    if inputs.grad is not None:
        dist.send(inputs.grad, _neighbour(state, -1), group=state.pipeline.group)


def _received_hidden(model: Transformer, tokens: Tensor, state: ParallelState) -> Tensor:
    hidden = torch.empty(*tokens.shape, model.config.hidden_size)
    dist.recv(hidden, _neighbour(state, -1), group=state.pipeline.group)
    return hidden.requires_grad_()


def _neighbour(state: ParallelState, offset: int) -> int:
    return state.pipeline.ranks[state.stage + offset]
