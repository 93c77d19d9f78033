"""Adam on flat buffers, its state in pausable memory like everything of the trainer."""

from __future__ import annotations

import torch
from torch import Tensor

_BETAS = (0.9, 0.95)
_EPSILON = 1e-8


class FlatAdam:
    """Adam without weight decay for one flat parameter buffer.

    torch's own Adam is not used: its first call imports the compiler, seconds a process.

    Args:
        parameters: Flat [N], float32; updated in place.
        gradients: Flat [N], read at each step.
        learning_rate: Step size.
    """

    def __init__(self, parameters: Tensor, gradients: Tensor, learning_rate: float) -> None:
        self._parameters = parameters
        self._gradients = gradients
        self._learning_rate = learning_rate
        self._mean = torch.zeros_like(parameters)
        self._variance = torch.zeros_like(parameters)
        self._num_steps = 0

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters along the gradients."""
        self._num_steps += 1
        first, second = _BETAS
        self._mean.lerp_(self._gradients, 1 - first)
        self._variance.mul_(second).addcmul_(self._gradients, self._gradients, value=1 - second)
        corrected = (self._variance / (1 - second**self._num_steps)).sqrt_().add_(_EPSILON)
        rate = self._learning_rate / (1 - first**self._num_steps)
        self._parameters.addcdiv_(self._mean, corrected, value=-rate)
