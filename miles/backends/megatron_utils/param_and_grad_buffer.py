"""One flat buffer for all trained parameters, and one for their gradients.

As in Megatron, only parameters that require a gradient get a place; frozen ones stay where
they are.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from miles.utils.pausable_memory import torch_memory_saver
from miles.utils.residency import name_tensors


@dataclass
class DistributedDataParallelConfig:
    """What the buffers need to know of the run.

    Attributes:
        pausable: Whether the buffers lie in pausable memory at all.
        disable_param_buffers_cpu_backup: Parameters come back as zeros after a pause.
        disable_grad_buffers_cpu_backup: Gradients come back as zeros after a pause.
    """

    pausable: bool = False
    disable_param_buffers_cpu_backup: bool = False
    disable_grad_buffers_cpu_backup: bool = False

    @classmethod
    def from_args(cls, args: Namespace) -> DistributedDataParallelConfig:
        """Take over what validation decided."""
        return cls(
            pausable=args.offload_train,
            disable_param_buffers_cpu_backup=args.disable_param_buffers_cpu_backup,
            disable_grad_buffers_cpu_backup=args.disable_grad_buffers_cpu_backup,
        )


class ParamAndGradBuffer:
    """Moves parameters of one dtype into a flat buffer, and gives each a place for its gradient.

    The parameters keep their identity and values; `param.data` and `param.grad` become views
    of the buffers. Clear gradients with `zero_grad` of this class, not by setting them to
    None.

    Args:
        ddp_config: Where the buffers lie; read once, here.
        named_params: Name and parameter, all of one dtype. Those that require no gradient
            are left alone. May be empty.

    Attributes:
        param_data: 1-d, all parameters one after the other.
        grad_data: 1-d, the same layout.
        names: Names of the parameters inside, in order.

    Raises:
        ValueError: The parameters have different dtypes.
    """

    def __init__(
        self,
        ddp_config: DistributedDataParallelConfig,
        named_params: Sequence[tuple[str, torch.nn.Parameter]],
    ) -> None:
        self._ddp_config = ddp_config
        trained = [(name, param) for name, param in named_params if param.requires_grad]
        dtypes = {param.dtype for _, param in trained}
        if len(dtypes) > 1:
            raise ValueError(f"one buffer holds one dtype, not {sorted(map(str, dtypes))}")
        dtype = dtypes.pop() if dtypes else torch.float32
        num_elements = sum(param.numel() for _, param in trained)
        self.names = [name for name, _ in trained]
        self.param_data = self._flat(
            "param_buffer", num_elements, dtype, ddp_config.disable_param_buffers_cpu_backup
        )
        self.grad_data = self._flat(
            "grad_buffer", num_elements, dtype, ddp_config.disable_grad_buffers_cpu_backup
        )
        self._move_in(trained)

    def zero_grad(self) -> None:
        """Set all gradients to zero, in place."""
        self.grad_data.zero_()

    def _flat(
        self, tag: str, num_elements: int, dtype: torch.dtype, is_backup_disabled: bool
    ) -> torch.Tensor:
        if not self._ddp_config.pausable:
            return torch.zeros(num_elements, dtype=dtype)
        with torch_memory_saver.region(tag, enable_cpu_backup=not is_backup_disabled):
            return torch.zeros(num_elements, dtype=dtype)

    @torch.no_grad()
    def _move_in(self, trained: Sequence[tuple[str, torch.nn.Parameter]]) -> None:
        start = 0
        for name, param in trained:
            place = slice(start, start + param.numel())
            start = place.stop
            self.param_data[place].copy_(param.reshape(-1))
            param.data = self.param_data[place].view(param.shape)
            param.grad = self.grad_data[place].view(param.shape)
            name_tensors([(name, param), (f"{name}.grad", param.grad)])
