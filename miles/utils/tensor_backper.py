"""Host copies of the weights, by tag.

Tags in use: `actor` (what trains), `ref` (the frozen reference), `old_actor` (the previous
weights).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

import torch

from miles.utils.pausable_memory import torch_memory_saver

SourceGetter = Callable[[], Iterable[tuple[str, torch.Tensor]]]
"""Yields name and tensor of each weight, the same names every time."""


class TensorBackuper(ABC):
    """Keeps weights under tags, and gives them back."""

    @staticmethod
    def create(source_getter: SourceGetter, single_tag: str | None) -> TensorBackuper:
        """Make a backuper.

        Args:
            source_getter: Yields the live weights.
            single_tag: `None` keeps copies under any tag. Otherwise nothing is copied, and
                this one tag stands for the live weights themselves.
        """
        if single_tag is None:
            return _TensorBackuperNormal(source_getter)
        return _TensorBackuperNoop(source_getter, single_tag)

    @property
    @abstractmethod
    def backup_tags(self) -> list[str]:
        """The tags that `get` knows, oldest first."""

    @abstractmethod
    def backup(self, tag: str) -> None:
        """Keep the live weights under a tag, in the place of what it held before."""

    @abstractmethod
    def get(self, tag: str) -> dict[str, torch.Tensor]:
        """The weights under a tag by name; not a copy, to be read only.

        Raises:
            KeyError: Nothing was kept under this tag.
        """

    @abstractmethod
    def restore(self, tag: str) -> None:
        """Write the weights under a tag into the live ones.

        Raises:
            KeyError: Nothing was kept under this tag, or not this weight.
        """

    @abstractmethod
    def copy(self, src_tag: str, dst_tag: str) -> None:
        """Keep under `dst_tag` what `src_tag` holds.

        Raises:
            KeyError: Nothing was kept under `src_tag`.
        """


class _TensorBackuperNormal(TensorBackuper):
    """Copies in ordinary host memory, readable whatever is paused."""

    def __init__(self, source_getter: SourceGetter) -> None:
        self._source_getter = source_getter
        self._copies: dict[str, dict[str, torch.Tensor]] = {}

    @property
    def backup_tags(self) -> list[str]:
        return list(self._copies)

    @torch.no_grad()
    def backup(self, tag: str) -> None:
        self._keep(tag, self._source_getter())

    def get(self, tag: str) -> dict[str, torch.Tensor]:
        return self._copies[tag]

    @torch.no_grad()
    def restore(self, tag: str) -> None:
        copies = self._copies[tag]
        for name, live in self._source_getter():
            live.copy_(copies[name])

    @torch.no_grad()
    def copy(self, src_tag: str, dst_tag: str) -> None:
        self._keep(dst_tag, self._copies[src_tag].items())

    def _keep(self, tag: str, named_tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
        copies = self._copies.setdefault(tag, {})
        # Outside of any region: a copy that is paused together with the original is none.
        with torch_memory_saver.disable():
            for name, tensor in named_tensors:
                if name not in copies:
                    copies[name] = torch.empty_like(tensor, device="cpu", requires_grad=False)
                copies[name].copy_(tensor)


class _TensorBackuperNoop(TensorBackuper):
    """No copies: the one tag is the live weights.

    It holds checksums instead, to notice weights that changed since they were "kept". To
    compute them it reads every weight, also in `get`: where one of them is paused and has
    no copy, `get` never returns.
    """

    def __init__(self, source_getter: SourceGetter, single_tag: str) -> None:
        self._source_getter = source_getter
        self._single_tag = single_tag
        self._hashes: dict[str, int] | None = None

    @property
    def backup_tags(self) -> list[str]:
        return [] if self._hashes is None else [self._single_tag]

    def backup(self, tag: str) -> None:
        self._check_tag(tag)
        self._hashes = _compute_hash_dict(dict(self._source_getter()))

    def get(self, tag: str) -> dict[str, torch.Tensor]:
        self._check_tag(tag)
        if self._hashes is None:
            raise KeyError(tag)
        live = dict(self._source_getter())
        self._check_unchanged(_compute_hash_dict(live), self._hashes)
        return live

    def restore(self, tag: str) -> None:
        self.get(tag)

    def copy(self, src_tag: str, dst_tag: str) -> None:
        self._check_tag(src_tag)
        self._check_tag(dst_tag)

    def _check_tag(self, tag: str) -> None:
        if tag != self._single_tag:
            raise KeyError(
                f"the weights backuper is off and knows only {self._single_tag!r}, not {tag!r}"
            )

    def _check_unchanged(self, now: dict[str, int], before: dict[str, int]) -> None:
        changed = [name for name in before if now.get(name) != before[name]]
        if changed:
            raise RuntimeError(
                f"{len(changed)} weights changed since backup({self._single_tag!r}), "
                f"the first is {changed[0]}"
            )


def _compute_hash_dict(tensors: dict[str, torch.Tensor]) -> dict[str, int]:
    return {name: _compute_hash_tensor(tensor) for name, tensor in tensors.items()}


@torch.no_grad()
def _compute_hash_tensor(x: torch.Tensor) -> int:
    """The sum of all bytes: cheap, exact whatever the values, and it reads everything."""
    return int(x.reshape(-1).view(torch.uint8).sum().item())
