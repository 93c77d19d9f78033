"""Process groups that are destroyed while the model sleeps, and made anew afterwards.

WORLD and plain gloo groups stay: only groups made here come and go.
"""

from __future__ import annotations

import torch.distributed as dist


class ReloadableProcessGroup:
    """A group whose communicator can be dropped and rebuilt.

    Attributes:
        ranks: Global ranks of the members, ascending.
    """

    _all: list[ReloadableProcessGroup] = []  # noqa: RUF012 - every group of this process

    def __init__(self, ranks: list[int]) -> None:
        self.ranks = ranks
        self._group: dist.ProcessGroup | None = None
        self._reload()
        self._all.append(self)

    @property
    def group(self) -> dist.ProcessGroup:
        """The live group.

        Raises:
            RuntimeError: It is destroyed now.
        """
        if self._group is None:
            raise RuntimeError(f"process group of ranks {self.ranks} is destroyed: model asleep?")
        return self._group

    def _reload(self) -> None:
        # Every rank calls `new_group` for every group, member or not: it is a collective.
        self._group = dist.new_group(self.ranks, backend="gloo")

    def _destroy(self) -> None:
        if self._group is not None and dist.get_rank() in self.ranks:
            dist.destroy_process_group(self._group)
        self._group = None


def reload_process_groups() -> None:
    """Rebuild every destroyed group. A collective: all ranks, same order of creation."""
    for group in ReloadableProcessGroup._all:
        if group._group is None:
            group._reload()


def destroy_process_groups() -> None:
    """Drop the communicators of every reloadable group, with their threads and sockets."""
    for group in ReloadableProcessGroup._all:
        group._destroy()
