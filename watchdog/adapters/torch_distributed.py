"""The collectives of `torch.distributed`: counted always, recorded, and timed.

Each function is replaced in `torch.distributed.distributed_c10d` as soon as that module has
run, so that everyone who copies the name copies ours; `torch.distributed` takes its names from
there. `isend` and `irecv` are compared by identity inside of that module, which holds since
both names are the same wrapper.

Source:
    `torch/distributed/distributed_c10d.py`: `_check_op`, `batch_isend_irecv`, and the
    signatures of the functions listed here.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from watchdog.guest.notices import notice_once
from watchdog.guest.worker import run_guarded
from watchdog.process_watch import current_watch, ensure_started
from watchdog.recording.recorder import Recorder, active

_LOCAL = "use_local_synchronization"


class Op(NamedTuple):
    """One function to replace.

    Attributes:
        name: Its name.
        payload: Parameter whose bytes count, "" = none.
        is_counted: Whether each call of it is one step of every member of the group, so that it
            has a sequence number there.
        is_essential: Whether a torch without it deserves a warning.
    """

    name: str
    payload: str = ""
    is_counted: bool = True
    is_essential: bool = True


OPS = (
    Op("all_reduce", "tensor"),
    Op("broadcast", "tensor"),
    Op("reduce", "tensor"),
    Op("all_gather", "tensor"),
    Op("all_gather_into_tensor", "input_tensor"),
    Op("reduce_scatter", "output"),
    Op("reduce_scatter_tensor", "input"),
    Op("gather", "tensor"),
    Op("scatter", "tensor"),
    Op("all_to_all"),
    Op("all_to_all_single", "input"),
    Op("barrier"),
    Op("monitored_barrier"),
    Op("all_gather_object"),
    Op("gather_object"),
    Op("broadcast_object_list"),
    Op("scatter_object_list"),
    Op("all_reduce_coalesced", is_essential=False),
    Op("all_gather_coalesced", is_essential=False),
    Op("_all_gather_base", "input_tensor", is_essential=False),
    Op("_reduce_scatter_base", "input", is_essential=False),
    Op("new_group"),
    Op("split_group", is_counted=False, is_essential=False),
    Op("send", "tensor", is_counted=False),
    Op("recv", "tensor", is_counted=False),
    Op("isend", "tensor", is_counted=False),
    Op("irecv", "tensor", is_counted=False),
    Op("batch_isend_irecv", is_counted=False),
    Op("send_object_list", is_counted=False, is_essential=False),
    Op("recv_object_list", is_counted=False, is_essential=False),
)


def patch(module: ModuleType) -> None:
    """Replace the collectives of the module. Never raises.

    Args:
        module: `torch.distributed.distributed_c10d`, just imported.
    """
    for op in OPS:
        original = getattr(module, op.name, None)
        if original is not None:
            setattr(module, op.name, _recorded(op, original))
        elif op.is_essential:
            notice_once(op.name, f"this torch has no torch.distributed.{op.name}: not recorded")
    for name, wrapper in (
        ("new_group", _naming),
        ("init_process_group", _starting),
        ("destroy_process_group", _forgetting),
    ):
        setattr(module, name, wrapper(getattr(module, name)))


def _recorded(op: Op, original: Callable[..., Any]) -> Callable[..., Any]:
    parameters = list(inspect.signature(original).parameters)
    group_at = _place(parameters, "group")
    async_at = _place(parameters, "async_op")
    payload_at = _place(parameters, op.payload)
    name, payload, is_counted = op.name, op.payload, op.is_counted
    is_posting = name in ("isend", "irecv", "batch_isend_irecv")
    may_be_local = _LOCAL in parameters
    get_ident = threading.get_ident

    @functools.wraps(original)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        recorder = active.recorder
        if recorder is None:
            return original(*args, **kwargs)
        thread_id = get_ident()
        if thread_id in recorder.open_collectives:
            return original(*args, **kwargs)
        try:
            num_args = len(args)
            group = args[group_at] if num_args > group_at else kwargs.get("group")
            is_async = args[async_at] if num_args > async_at else kwargs.get("async_op", is_posting)
            tensor = args[payload_at] if num_args > payload_at else kwargs.get(payload)
            num_bytes = getattr(tensor, "nbytes", 0)
            # Such a group is made by its members alone: no step of the default group.
            is_step = is_counted and not (may_be_local and kwargs.get(_LOCAL))
            at = recorder.begin_collective(thread_id, name, group, num_bytes, is_async, is_step)
        except Exception as error:
            recorder.open_collectives.pop(thread_id, None)
            _failed(error)
            return original(*args, **kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException:
            _end(recorder, thread_id, at, True)
            raise
        _end(recorder, thread_id, at, False)
        return result

    return recorded


def _naming(recorded: Callable[..., Any]) -> Callable[..., Any]:
    """Remember where a group was made: that is what people know it by."""

    @functools.wraps(recorded)
    def new_group(*args: Any, **kwargs: Any) -> Any:
        group = recorded(*args, **kwargs)
        recorder = active.recorder
        if recorder is not None:
            made = recorder.groups.names.made
            run_guarded(functools.partial(made, group, sys._getframe(1)))
        return group

    return new_group


def _end(recorder: Recorder, thread_id: int, at: int, raised: bool) -> None:
    try:
        recorder.end_collective(thread_id, at, raised)
    except Exception as error:
        _failed(error)


def _starting(original: Callable[..., Any]) -> Callable[..., Any]:
    """Start the watch before ranks meet: the meeting itself may hang."""
    signature = inspect.signature(original)
    recorded = _recorded(Op("init_process_group", is_counted=False), original)

    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        run_guarded(lambda: _start(signature, args, kwargs))
        result = recorded(*args, **kwargs)
        run_guarded(_met)
        return result

    return init_process_group


def _start(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    given = signature.bind_partial(*args, **kwargs).arguments
    rank, world_size = given.get("rank", -1), given.get("world_size", -1)
    ensure_started(rank if rank >= 0 else None, world_size if world_size > 0 else None)


def _met() -> None:
    watch = current_watch()
    if watch is not None:
        watch.recorder.groups.forget()
        watch.learn_ranks()


def _forgetting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            recorder = active.recorder
            if recorder is not None:
                run_guarded(recorder.groups.forget)

    return destroy_process_group


def _place(parameters: list[str], name: str) -> int:
    return parameters.index(name) if name in parameters else 1000


def _failed(error: Exception) -> None:
    notice_once("collective", f"a collective was not recorded, training goes on: {error!r}")
