"""The known root causes: one module each, the tuple below is the one list, its order precedence."""

from __future__ import annotations

from typing import Protocol

from watchdog.findings import CauseClass, Finding, Refutation
from watchdog.rules import (
    adapter_versions_accumulate,
    blocking_call_in_event_loop,
    call_queued_behind_its_caller,
    circle_of_receives,
    cold_compilation,
    communicator_split_of_bound_group,
    core_woken_after_pause,
    cuda_ipc_handle_opened_twice,
    deep_sleep_with_adapters,
    device_failed,
    device_freed_during_collective,
    device_out_of_memory,
    different_collectives,
    disk_full,
    driver_failed,
    duplicate_device,
    engine_dead,
    engine_error_ignored,
    engine_left_paused,
    engine_list_differs,
    engine_never_answers,
    engine_step_during_sleep,
    file_descriptors_exhausted,
    flush_refused,
    gather_interleaved_with_send,
    gil_held,
    graph_pool_lost,
    graph_registered_before_resume,
    group_creation_cycle,
    group_lists_differ,
    group_never_joined,
    group_port_taken,
    group_size_mismatch,
    groups_crosswise,
    groups_rebuilt_in_paused_region,
    incomplete_wake,
    infiniband_error,
    interface_name_invalid,
    ipc_needs_ptrace,
    ipc_socket_collision,
    jit_lock_left_behind,
    lock_leaked_by_error,
    lock_never_released,
    loopback_address,
    lora_unload_waits_for_requests,
    member_killed,
    member_killed_by_memory_limit,
    member_never_started,
    member_stopped,
    missing_backup_lora_colocate,
    missing_rank,
    nccl_proxy_slots_leak,
    nccl_versions_differ,
    negative_lookup_cache,
    paused_memory_read,
    rank_waits_for_file,
    rank_zero_only_export,
    ranks_decided_differently,
    resume_of_unreleased_memory,
    same_collective_everywhere,
    save_while_offloaded,
    shared_memory_too_small,
    silent_host,
    slow_not_hung,
    stale_update_group,
    storage_slow,
    store_owner_left,
    time_out_not_applied,
    transport_settings_differ,
    virtual_interface,
    worker_skipped_collective,
    zmq_peer_lost,
)
from watchdog.situation import Situation


class Rule(Protocol):
    """What a module of this package offers; its docstring is its documentation.

    Two constants are optional: `FLAGS`, the arguments of a run that the rule looks at, and
    `IS_GENERAL`, for a rule that only says what can be seen: it yields to one that says why.
    """

    __name__: str
    __doc__: str | None

    @property
    def CAUSE_CLASS(self) -> CauseClass:  # noqa: N802 - a constant of the module
        """Its class."""
        ...

    def diagnose(self, situation: Situation) -> Finding | Refutation | None:
        """What the rule says of the situation: it fits, it was ruled out, or nothing."""
        ...


RULES: tuple[Rule, ...] = (
    member_killed_by_memory_limit,
    device_out_of_memory,
    device_failed,
    ipc_needs_ptrace,
    duplicate_device,
    resume_of_unreleased_memory,
    file_descriptors_exhausted,
    shared_memory_too_small,
    disk_full,
    group_port_taken,
    member_stopped,
    silent_host,
    missing_backup_lora_colocate,
    save_while_offloaded,
    groups_rebuilt_in_paused_region,
    engine_step_during_sleep,
    incomplete_wake,
    deep_sleep_with_adapters,
    graph_pool_lost,
    paused_memory_read,
    cuda_ipc_handle_opened_twice,
    gil_held,
    flush_refused,
    lora_unload_waits_for_requests,
    adapter_versions_accumulate,
    core_woken_after_pause,
    communicator_split_of_bound_group,
    group_size_mismatch,
    stale_update_group,
    group_creation_cycle,
    group_lists_differ,
    interface_name_invalid,
    loopback_address,
    virtual_interface,
    engine_dead,
    member_never_started,
    store_owner_left,
    member_killed,
    driver_failed,
    nccl_proxy_slots_leak,
    nccl_versions_differ,
    graph_registered_before_resume,
    infiniband_error,
    transport_settings_differ,
    cold_compilation,
    negative_lookup_cache,
    storage_slow,
    slow_not_hung,
    engine_error_ignored,
    jit_lock_left_behind,
    blocking_call_in_event_loop,
    call_queued_behind_its_caller,
    lock_leaked_by_error,
    device_freed_during_collective,
    lock_never_released,
    rank_waits_for_file,
    gather_interleaved_with_send,
    groups_crosswise,
    rank_zero_only_export,
    engine_list_differs,
    ranks_decided_differently,
    worker_skipped_collective,
    circle_of_receives,
    group_never_joined,
    ipc_socket_collision,
    different_collectives,
    missing_rank,
    zmq_peer_lost,
    engine_left_paused,
    engine_never_answers,
    time_out_not_applied,
    same_collective_everywhere,
)
"""Order is precedence among findings of one confidence."""
