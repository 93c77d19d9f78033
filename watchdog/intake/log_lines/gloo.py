"""gloo: the CPU backend that the barriers of a weight sync run on.

What these lines do not say: who is at fault. The rank that reports a receive timeout is the
punctual one; `Connection closed by peer` says that the peer went away, not why; the connect
failure of a full mesh names the address that was tried, which is what the *other* end advertised.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "gloo_recv_timeout",
        ("Timed out waiting ", "timed out waiting "),
        r"[Tt]imed out waiting (?P<timeout_ms>\d+)ms for (?P<direction>recv|send) operation",
    ),
    line_kind(
        "gloo_app_timeout",
        "Application timeout caused pair closure",
        r"Application timeout caused pair closure",
    ),
    line_kind(
        "gloo_peer_closed",
        ("Connection closed by peer", "Connection reset by peer"),
        r"Connection (?P<how>closed|reset) by peer(?: \[(?P<peer>[^\]]{1,80})\])?",
    ),
    line_kind(
        "gloo_connect_failed",
        ("connectFullMesh failed", "Gloo connect"),
        r"connectFullMesh failed(?: with (?P<detail>.{1,300}))?",
    ),
    line_kind(
        "gloo_loopback_fallback",
        "Using the loopback address as fallback",
        r"Using the loopback address as fallback",
    ),
    line_kind(
        "gloo_unknown_interface",
        ("Unable to find address for", "Unable to resolve hostname"),
        r"Unable to find address for:? (?P<interface>\S+)",
    ),
    line_kind(
        "monitored_barrier_missing",
        "failed to pass monitoredBarrier",
        r"Ranks? (?P<ranks>[\d, ]+?) failed to pass monitoredBarrier in (?P<timeout_ms>\d+) ?ms",
    ),
    line_kind(
        "monitored_barrier_blames_rank0",
        "while waiting for send/recv from rank 0",
        r"waiting for send/recv from rank 0",
    ),
    line_kind(
        "loopback_peer",
        ("remote=[127.0.0.1]", "remote=[::1]"),
        r"remote=\[(?P<peer>127\.0\.0\.1|::1)\](?::(?P<port>\d+))?",
    ),
    line_kind(
        "group_create",
        "new_group(",
        r"new_group\((?:backend=)?[\"']?(?P<backend>\w+)?[\"']?.{0,80}\)(?P<detail>.{0,80})",
    ),
)
