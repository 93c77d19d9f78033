"""Cases of interfaces, addresses, NCCL and what lies below it."""

from __future__ import annotations

from tests.rules import stacks
from tests.rules.building import engine, files, log, rank
from tests.rules.shared_parts import ALL, ALL_REDUCE, LATER, SYNC, error_of, waiting
from watchdog.evidence import Evidence, LogEvent, Socket


def interface_name_invalid__fires_exclusion() -> Evidence:
    said = log("Unable to find address for: ^docker0", kind="gloo_unknown_interface", rank=0)
    return files(
        rank(0, stacks.NEW_GROUP),
        rank(1, stacks.NEW_GROUP),
        log_events=(said,),
        environment={"GLOO_SOCKET_IFNAME": "^docker0,lo"},
    )


def interface_name_invalid__silent_nccl_exclusion() -> Evidence:
    variables = {"GLOO_SOCKET_IFNAME": "eth0", "NCCL_SOCKET_IFNAME": "^docker0,lo"}
    return files(
        rank(0, stacks.NEW_GROUP),
        rank(1, stacks.NEW_GROUP),
        log_events=(SYNC, LATER),
        environment=variables,
    )


_FALLBACK = (
    "Warning: Unable to resolve hostname to a (local)"
    " address. Using the loopback address as fallback."
)


def loopback_address__fires_fallback_warning() -> Evidence:
    said = log(_FALLBACK, "node_b.log", 6, "gloo_loopback_fallback", rank=1, host="b")
    tried = (Socket("127.0.0.1:51022", "127.0.0.1:40655", "SYN_SENT"),)
    return files(rank(0, stacks.NEW_GROUP, host="a", sockets=tried), log_events=(said,))


def loopback_address__silent_connection_within_the_host() -> Evidence:
    local = (Socket("127.0.0.1:51022", "127.0.0.1:40655", "ESTABLISHED"),)
    return files(
        *(rank(r, stacks.NEW_GROUP, sockets=local) for r in (0, 1)), log_events=(SYNC, LATER)
    )


def virtual_interface__fires_bridge_across_hosts() -> Evidence:
    said = log(
        "NCCL INFO Bootstrap: Using docker0:172.17.0.1<0>",
        "a.log",
        3,
        "nccl_interface",
        rank=0,
        host="a",
    )
    failed = log(
        "remote process exited or there was a network error",
        "b.log",
        5,
        "nccl_error",
        rank=1,
        host="b",
    )
    return files(
        rank(0, stacks.TRAINER_JOIN, host="a"),
        rank(1, stacks.TRAINER_JOIN, host="b"),
        log_events=(said, failed),
    )


def virtual_interface__silent_real_interface() -> Evidence:
    said = log(
        "NCCL INFO Bootstrap: Using eth0:10.1.2.3<0>",
        "a.log",
        3,
        "nccl_interface",
        rank=0,
        host="a",
    )
    return files(
        rank(0, stacks.TRAINER_JOIN, host="a"),
        rank(1, stacks.TRAINER_JOIN, host="b"),
        log_events=(said, SYNC, LATER),
    )


_PROXY = """
ncclLocalOpAppend (libnccl.so.2)
ncclProxySaveOp (libnccl.so.2)
ncclEnqueueCheck (libnccl.so.2)
ncclBroadcast (libnccl.so.2)
c10d::ProcessGroupNCCL::broadcast (libtorch_cuda.so)
broadcast (torch/distributed/distributed_c10d.py:2829)
push_bucket (sync/push.py:118)
"""


_ON_DEVICE = """
cuEventSynchronize (libcuda.so.1)
synchronize (torch/cuda/streams.py:231)
push_bucket (sync/push.py:121)
"""


def nccl_proxy_slots_leak__fires_one_rank_spins() -> Evidence:
    machine = log("Linux 6.8.0 aarch64", "system.txt", kind="machine")
    return files(
        *(rank(r, _ON_DEVICE) for r in (0, 1)),
        rank(2, _PROXY),
        rank(3, _ON_DEVICE),
        log_events=(machine,),
        versions={"nvidia-nccl-cu13": "2.28.9"},
    )


def nccl_proxy_slots_leak__silent_all_on_the_device() -> Evidence:
    return files(
        *(rank(r, _ON_DEVICE, _ON_DEVICE) for r in ALL),
        log_events=(SYNC, LATER),
        versions={"nvidia-nccl-cu13": "2.28.9"},
    )


def _versions(trainer: str, other: str) -> tuple[LogEvent, ...]:
    return (
        log(
            f"NCCL version {trainer}+cuda12.9",
            kind="nccl_version",
            rank=0,
            fields={"version": trainer},
            time_s=21.0,
        ),
        log(
            f"NCCL version {other}+cuda12.9",
            "engine0.log",
            2,
            "nccl_version",
            engine=0,
            fields={"version": other},
            time_s=21.0,
        ),
    )


def _first_broadcast(trainer: str, other: str, **more: object) -> Evidence:
    receivers = [engine(0, stacks.SCHEDULER_RECEIVE, worker=w) for w in (0, 1)]
    ranks = [rank(0, stacks.RAY_GET), rank(1, stacks.GLOO_BARRIER)]
    events = (SYNC, *_versions(trainer, other), LATER)
    return files(*ranks, *receivers, log_events=events, **more)


def nccl_versions_differ__fires_first_broadcast() -> Evidence:
    return _first_broadcast("2.30.4", "2.27.7")


def nccl_versions_differ__silent_same_version() -> Evidence:
    return _first_broadcast("2.30.4", "2.30.4")


def transport_settings_differ__fires_p2p_on_one_side() -> Evidence:
    receivers = [
        engine(0, stacks.SCHEDULER_RECEIVE, worker=0, environment={"NCCL_P2P_DISABLE": "1"})
    ]
    ranks = [
        rank(0, stacks.RAY_GET, environment={"NCCL_DEBUG": "WARN"}),
        rank(1, stacks.GLOO_BARRIER, environment={"NCCL_DEBUG": "WARN"}),
    ]
    return files(*ranks, *receivers, log_events=(SYNC, LATER))


def transport_settings_differ__silent_same_environment() -> Evidence:
    same = {"NCCL_P2P_DISABLE": "1"}
    return files(
        rank(0, stacks.RAY_GET, environment=same),
        rank(1, stacks.GLOO_BARRIER, environment=same),
        engine(0, stacks.SCHEDULER_RECEIVE, worker=0, environment=same),
        log_events=(SYNC, LATER),
    )


def infiniband_error__fires_completion_error() -> Evidence:
    said = log(
        "NCCL WARN NET/IB: got completion with error 12, opcode 0",
        kind="nccl_error",
        rank=1,
        time_s=25.0,
    )
    return files(*(rank(r, _ON_DEVICE, _ON_DEVICE) for r in ALL), log_events=(SYNC, said, LATER))


def infiniband_error__silent_peer_killed() -> Evidence:
    said = log(
        "NCCL WARN NET/IB: got completion with error 12, opcode 0",
        kind="nccl_error",
        rank=1,
        time_s=25.0,
    )
    gone = rank(3, status="dead", status_detail="killed by signal 9")
    return files(
        *(rank(r, _ON_DEVICE, _ON_DEVICE) for r in (0, 1, 2)),
        gone,
        log_events=(SYNC, said, LATER),
    )


def nccl_versions_differ__fires_said_by_nccl() -> Evidence:
    said = log(
        "NCCL WARN Mismatched NCCL version detected : rank 1 version 22705 rank 0 version 22304",
        kind="nccl_error",
        line=3,
        rank=0,
        time_s=29.0,
    )
    error = error_of("NCCL error: invalid usage", "RuntimeError", engine=0)
    return files(*waiting(1), engine(0), log_events=(SYNC, said, error))


_LOOPBACK = log(
    "Using the loopback address as fallback.",
    kind="gloo_loopback_fallback",
    rank=0,
    time_s=5.0,
    line=1,
)


def loopback_address__silent_earlier_syncs_went_well() -> Evidence:
    done = log("Timer update_weights end", kind="trainer_phase", line=4, time_s=18.0, rank=0)
    return files(
        *(rank(r, stacks.NEW_GROUP) for r in range(3)),
        *waiting(3),
        log_events=(_LOOPBACK, done, SYNC),
    )


def _using(host: str, number: int, interface: str, address: str) -> LogEvent:
    return log(
        f"NCCL INFO Bootstrap: Using {interface}:{address}<0>",
        kind="nccl_interface",
        rank=number,
        pid=1000 + number,
        host=host,
        time_s=5.0 + number,
        fields={"interface": interface, "address": address},
    )


def _both_in_all_reduce(interface: str, address: str, tried: str) -> Evidence:
    refused = log(
        f"socketPollConnect: connect to {tried}<41873> returned Connection refused, retrying",
        line=4,
        rank=0,
        pid=1000,
        host="master",
        time_s=200.0,
    )
    return files(
        rank(0, ALL_REDUCE),
        rank(1, ALL_REDUCE),
        log_events=(
            _using("master", 0, "eth0", "10.0.0.7"),
            _using("worker", 1, interface, address),
            refused,
        ),
        world_size=2,
    )


def virtual_interface__fires_refused_at_its_address() -> Evidence:
    return _both_in_all_reduce("docker0", "172.17.0.1", "172.17.0.1")


def virtual_interface__silent_refused_elsewhere() -> Evidence:
    return _both_in_all_reduce("docker0", "172.17.0.1", "10.0.0.9")
