"""What in a launch is known to hang, before it runs: one module a hazard, and their table.

A check looks at flags, environment, versions and the host, and says what can happen and what
decides whether it does. The rule that recognises the hang itself is named in it, and predicates
that both need live in `watchdog.signs`: there is one place that knows each of them.
"""

from __future__ import annotations

from typing import Protocol

from watchdog.static_checks import (
    adapter_unload_with_parallel_samples,
    caches_on_network_storage,
    default_group_bound_to_device,
    disk_target_without_backuper,
    expandable_segments_without_ptrace,
    gloo_interface_not_a_name,
    gloo_interface_unset,
    graphs_registered_under_memory_saver,
    in_place_without_quiescence,
    lora_without_backuper,
    pipeline_with_several_engines,
    port_in_ephemeral_range,
    provider_without_backuper,
    retract_in_fully_async,
    same_device_in_trainer_and_server,
    sleeping_trainer_without_copy,
    small_shared_memory,
    speculation_with_update_from_tensor,
    stale_lock_files,
    time_out_ignored,
    transport_settings_differ,
    two_nccl_libraries,
    virtual_interface_named,
)
from watchdog.static_checks.launch import Launch, Seen


class Check(Protocol):
    """What a module of this package offers; its docstring is its documentation."""

    __name__: str
    __doc__: str | None

    @property
    def RULE(self) -> str:  # noqa: N802 - a constant of the module
        """Name of the rule that recognises the hang, "" where none does."""
        ...

    def hazard(self, launch: Launch) -> Seen | None:
        """What the launch has of it, `None` for nothing."""
        ...


CHECKS: tuple[Check, ...] = (
    lora_without_backuper,
    provider_without_backuper,
    sleeping_trainer_without_copy,
    time_out_ignored,
    disk_target_without_backuper,
    retract_in_fully_async,
    in_place_without_quiescence,
    adapter_unload_with_parallel_samples,
    speculation_with_update_from_tensor,
    graphs_registered_under_memory_saver,
    pipeline_with_several_engines,
    expandable_segments_without_ptrace,
    gloo_interface_unset,
    gloo_interface_not_a_name,
    virtual_interface_named,
    transport_settings_differ,
    default_group_bound_to_device,
    same_device_in_trainer_and_server,
    port_in_ephemeral_range,
    two_nccl_libraries,
    small_shared_memory,
    caches_on_network_storage,
    stale_lock_files,
)
"""In the order in which they are told where the confidence is the same."""
