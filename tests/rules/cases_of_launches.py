"""Cases of jobs of which a part never ran, or ran on a device that failed."""

from __future__ import annotations

from tests.rules import stacks
from tests.rules.building import files, log, rank, sample
from watchdog.evidence import Evidence, LogEvent, Process

_FEW_CAME = log(
    "Timed out after 900 seconds waiting for clients. 12/32 clients joined.",
    line=30,
    kind="rendezvous_timeout",
    time_s=930.0,
    rank=0,
    fields={"timeout_s": "900", "joined": "12", "world_size": "32"},
)


def member_never_started__fires_launch_failed() -> Evidence:
    failed = log(
        "srun: error: Task launch for StepId=9.0 failed on node c4: Slurmd could not execve job",
        line=3,
        kind="launch_failed",
        time_s=10.0,
        fields={"host": "c4", "reason": "Slurmd could not execve job"},
    )
    return files(rank(0), log_events=(failed, _FEW_CAME))


def member_never_started__silent_everybody_came() -> Evidence:
    text = "Timed out after 900 seconds waiting for clients. 32/32 clients joined."
    came = log(
        text,
        line=30,
        kind="rendezvous_timeout",
        time_s=930.0,
        rank=0,
        fields={"joined": "32", "world_size": "32"},
    )
    return files(rank(0), log_events=(came,))


_WAITS_FOR_GROUP = """
wait (ray/_private/worker.py:2980)
wrapper (ray/_private/client_mode_hook.py:104)
make_placement_group (my_rl/cluster.py:31)
main (train.py:20)
"""


def _cluster(gpus: str, bundles: str) -> tuple[LogEvent, ...]:
    asked = "{'CPU': 1.0, 'GPU': 1.0}"
    return (
        log(
            f" 0.0/{gpus} GPU",
            "status.txt",
            11,
            "cluster_gpus",
            fields={"used": "0.0", "total": gpus},
        ),
        log(
            f" {asked} * {bundles} (SPREAD): 1+ pending placement groups",
            "status.txt",
            16,
            "cluster_demand",
            fields={"gpus": "1.0", "count_of_bundles": bundles},
        ),
    )


def _driver() -> Process:
    return Process("driver", "driver", pid=77, stacks=(sample(_WAITS_FOR_GROUP),))


def resources_never_granted__fires_more_than_the_cluster() -> Evidence:
    return files(_driver(), log_events=_cluster("32.0", "40"))


def resources_never_granted__silent_granted() -> Evidence:
    return files(rank(0, stacks.GLOO_BARRIER), log_events=_cluster("32.0", "40"))


def _xid(code: str, pid: int = 0) -> LogEvent:
    text = (
        f"NVRM: Xid (PCI:0000:a1:00): {code}, pid={pid}, name=python, GPU has fallen off the bus."
    )
    fields = {"device": "PCI:0000:a1:00", "xid": code, "xid_pid": str(pid)}
    return log(text, "dmesg.txt", 7, "gpu_xid", time_s=50.0, fields=fields)


def _cuda_error(number: int) -> LogEvent:
    return log(
        "AcceleratorError: CUDA error: unspecified launch failure",
        line=8,
        kind="traceback",
        time_s=51.0,
        rank=number,
        fields={
            "exception": "AcceleratorError",
            "message": "CUDA error: unspecified launch failure",
        },
    )


def device_failed__fires_off_the_bus() -> Evidence:
    return files(rank(1), rank(0, stacks.GLOO_BARRIER), log_events=(_xid("79"), _cuda_error(1)))


def device_failed__silent_error_of_the_program() -> Evidence:
    text = "NVRM: Xid (PCI:0000:a1:00): 31, pid=7, name=python, MMU Fault"
    fields = {"device": "PCI:0000:a1:00", "xid": "31"}
    fault = log(text, "dmesg.txt", 7, "gpu_xid", time_s=50.0, fields=fields)
    return files(rank(1), rank(0, stacks.GLOO_BARRIER), log_events=(fault, _cuda_error(1)))
