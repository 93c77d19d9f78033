"""The gloo group whose barriers frame each weight sync."""

from __future__ import annotations

import torch.distributed as dist

_gloo_group: dist.ProcessGroup | None = None


def init_gloo_group() -> dist.ProcessGroup:
    """Make the gloo group over all ranks, or return the one that exists.

    Every rank of an initialised default group must call it. It is given no time-out, so it
    gets torch's default for gloo, 30 minutes, whatever the default group was given.
    """
    global _gloo_group
    if _gloo_group is None:
        _gloo_group = dist.new_group(backend="gloo")
    return _gloo_group


def get_gloo_group() -> dist.ProcessGroup:
    """The group that `init_gloo_group` made.

    Raises:
        RuntimeError: There is none yet, or it was destroyed.
    """
    if _gloo_group is None:
        raise RuntimeError("there is no gloo group: call init_gloo_group() on every rank first")
    return _gloo_group


def destroy_gloo_group() -> None:
    """Take the group down, if there is one. `init_gloo_group` makes a new one."""
    global _gloo_group
    group, _gloo_group = _gloo_group, None
    # Whoever destroyed the default group took this one down with it.
    if group is not None and dist.is_initialized():
        dist.destroy_process_group(group)
