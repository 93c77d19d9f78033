"""Moves every tensor that is made inside a region onto pausable pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map_only

from miles.utils.pausable_memory.pages import Pages, tensor_on

_aten = torch.ops.aten

# What these return has no contents yet, so there is nothing to copy.
_WITHOUT_CONTENTS = {
    _aten.empty,
    _aten.empty_like,
    _aten.empty_permuted,
    _aten.empty_strided,
    _aten.new_empty,
    _aten.new_empty_strided,
}


class RegionMode(TorchDispatchMode):
    """Active inside `with region(...)`, in the thread that entered it.

    It sees every operator below autograd: factories, and results of computations. A result
    whose memory is new is moved; a view of, or a write into, existing memory is left alone.
    Tensors that are no plain CPU memory, and those made from foreign buffers
    (`torch.from_numpy`, `torch.frombuffer`), are left alone as well.

    Args:
        allocate: Maps that many bytes and notes them in the ledger.
        is_innermost: Whether the region is the one that new memory belongs to right now.
    """

    def __init__(
        self, allocate: Callable[[int], Pages], is_innermost: Callable[[RegionMode], bool]
    ) -> None:
        super().__init__()
        self._allocate = allocate
        self._is_innermost = is_innermost

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Otherwise the first tensor in a region imports torch's compiler: two seconds a rank.
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not self._is_innermost(self):
            return result
        existing = set() if _hands_over_new_memory(func, args) else _storages((args, kwargs))
        moved: dict[int, Pages] = {}

        def move(tensor: torch.Tensor) -> torch.Tensor:
            if not _is_movable(tensor) or _storage(tensor) in existing:
                return tensor
            pages = moved.get(_storage(tensor))
            if pages is None:
                pages = self._allocate(tensor.untyped_storage().nbytes())
                moved[_storage(tensor)] = pages
            home = tensor_on(pages, tensor, int(tensor.storage_offset()))
            return home if func.overloadpacket in _WITHOUT_CONTENTS else home.copy_(tensor)

        return tree_map_only(torch.Tensor, move, result)


def _hands_over_new_memory(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether this is torch.tensor() passing on memory that it made unseen.

    torch.from_numpy() comes the same way, with memory that is not torch's to resize.
    """
    return func.overloadpacket is _aten.lift_fresh and args[0].untyped_storage().resizable()


def _is_movable(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) is torch.Tensor
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and tensor.numel() > 0
    )


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _storages(tree: Any) -> set[int]:
    tensors = (leaf for leaf in tree_iter(tree) if isinstance(leaf, torch.Tensor))
    return {_storage(each) for each in tensors if each.layout is torch.strided}
