"""NCCL and its watchdog in torch.

What these lines do not say: the rank that raises the timeout is only the first whose clock ran
out. Compare `last_enqueued` and `last_completed` over the ranks: equal means transport, different
means divergence, and a rank far behind is the one to look at. `watchdog got stuck` says that a
host thread is blocked in the driver or that nobody lets go of the GIL, not that NCCL failed.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

_WORK = (
    r"WorkNCCL\(SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+), NumelIn=(?P<numel_in>\d+),"
    r" NumelOut=(?P<numel_out>\d+), Timeout\(ms\)=(?P<timeout_ms>\d+)\)"
)
_GROUP = r"\[PG ID (?P<pg_id>\d+) PG GUID (?P<pg_guid>\w+)(?:\((?P<group>[^)]{0,100})\))?"

LINES = (
    line_kind(
        "nccl_watchdog_timeout",
        "Watchdog caught collective operation timeout",
        _WORK + r" ran for (?P<ran_ms>\d+) milliseconds",
    ),
    line_kind(
        "nccl_work_status",
        "failure detected by watchdog at work sequence id",
        _GROUP + r".{0,120}?work sequence id: (?P<seq>\d+) PG status:"
        r" last enqueued work: (?P<last_enqueued>-?\d+),"
        r" last completed work: (?P<last_completed>-?\d+)",
    ),
    line_kind(
        "nccl_work_status",
        "detected by watchdog at work: ",
        _GROUP + r".{0,120}?detected by watchdog at work: (?P<seq>\d+),"
        r" last enqueued (?:NCCL )?work: (?P<last_enqueued>-?\d+),"
        r" last completed (?:NCCL )?work: (?P<last_completed>-?\d+)",
    ),
    line_kind(
        "nccl_dump_signal",
        "Received a dump signal due to a collective timeout",
        r"(?:timeout from rank (?P<from_rank>\d+)|timeout from this local rank)"
        r"(?:.*?Last enqueued NCCL work: (?P<last_enqueued>-?\d+),"
        r" last completed NCCL work: (?P<last_completed>-?\d+))?",
    ),
    line_kind(
        "nccl_watchdog_stuck",
        "watchdog got stuck for",
        r"watchdog got stuck for (?P<stuck_s>\d+) seconds",
    ),
    line_kind(
        "nccl_heartbeat_stopped",
        ("Heartbeat monitor timed out", "heartbeat monitor timed out"),
        r"[Hh]eartbeat monitor timed out",
    ),
    line_kind(
        "nccl_unique_id_wait",
        "retrieving ncclUniqueId from",
        r"retrieving ncclUniqueId from \[(?P<from_rank>\d+)\]",
    ),
    line_kind(
        "nccl_process_down",
        ("taking the entire process down", "watchdog thread terminated with exception"),
        r"taking the entire process down|watchdog thread terminated with exception",
    ),
    line_kind(
        "nccl_note",
        (
            "Stack trace of the failed collective",
            "Some NCCL operations",
            "Observed flight recorder",
        ),
        r"Stack trace of the failed collective|Some NCCL operations|Observed flight recorder",
    ),
    line_kind(
        "nccl_version",
        ("NCCL version ", "nccl=="),
        r"(?:NCCL version |using nccl==)(?P<version>\d[\d.]*)(?:\+cuda(?P<cuda>[\d.]+))?",
    ),
    line_kind(
        "nccl_interface",
        ("Bootstrap: Using", "Bootstrap : Using", "NET/Socket : Using"),
        r"(?:Bootstrap ?:|NET/Socket :) Using (?:\[\d+\])?"
        r"(?P<interface>[\w.\-]+):(?P<address>[\d.a-f:]+)",
    ),
    line_kind(
        "nccl_transport",
        ("NET/IB : Using", "NET/IB : No device", "via NET/", "via P2P", "via SHM"),
        r"NCCL INFO (?P<detail>(?:NET/IB :|Channel).{1,200})",
    ),
    line_kind(
        "nccl_setting",
        " set by environment to ",
        r"NCCL INFO (?P<name>NCCL_\w{2,60}) set by environment to (?P<value>[^\s.]{1,80})",
    ),
    line_kind(
        "nccl_comm_init",
        ("ncclCommInitRank", "ncclCommSplit"),
        r"(?P<call>ncclComm(?:InitRank\w*|Split)) comm (?P<comm>0x[0-9a-f]+)"
        r" rank (?P<comm_rank>\d+) nranks (?P<nranks>\d+)"
        r"(?:.{0,120}?parent (?P<parent>0x[0-9a-f]+))?.{0,200}Init (?P<stage>START|COMPLETE)",
    ),
    line_kind(
        "nccl_eager_connect",
        "Eagerly connecting nccl backend",
        r"Eagerly connecting nccl backend with device (?P<device>\S+)",
    ),
    line_kind("nccl_duplicate_gpu", "Duplicate GPU detected", r"Duplicate GPU detected"),
    line_kind(
        "nccl_error",
        (
            "ncclSystemError",
            "ncclInternalError",
            "ncclUnhandledCudaError",
            "ncclRemoteError",
            "ncclInvalidUsage",
            "NCCL WARN",
            "NCCL error",
        ),
        r"(?P<error>nccl\w+Error|ncclInvalidUsage|NCCL WARN .{1,200}|NCCL error.{0,200})",
    ),
)
