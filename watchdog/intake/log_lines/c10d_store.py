"""The c10d store, rendezvous, and the set-up of groups across trainer and engines.

What these lines do not say: a store that answers `Broken pipe` had its owner leave before; the
owner's own log has the reason. A member that waits here may be early, or alone for ever.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

_WORLD = r"world_size['\"]?[=:] ?(?P<world_size>\d+)"

LINES = (
    line_kind(
        "store_wait_timeout",
        ("wait timeout after", "Socket Timeout", "socket has timed out"),
        r"(?:wait timeout after (?P<timeout_ms>\d+)ms(?:, keys: (?P<keys>\S{1,300}))?"
        r"|Socket Timeout|socket has timed out(?: after (?P<timeout_s>\d+)s)?)",
    ),
    line_kind(
        "store_get_error",
        "store->get(",
        r"store->get\('(?P<keys>[^']{0,200})'\) got error:? ?(?P<detail>.{0,200})",
    ),
    line_kind(
        "store_owner_gone",
        ("flag on TCPStore", "failed to recv, got 0 bytes", "sendBytes failed"),
        r"flag on TCPStore|failed to recv, got 0 bytes|sendBytes failed",
    ),
    line_kind(
        "store_barrier_timeout",
        "store based barrier",
        r"store based barrier.{0,80}rank:? (?P<member>\d+).{0,300}?world_size=(?P<world_size>\d+)"
        r"(?:, (?:worker_count|num_workers_joined)=(?P<joined>\d+))?",
    ),
    line_kind(
        "rendezvous_timeout",
        ("RendezvousTimeoutError", "RendezvousConnectionError", "waiting for clients"),
        r"Timed out after (?P<timeout_s>\d+) seconds waiting for clients\."
        r" (?P<joined>\d{1,6})/(?P<world_size>\d{1,6}) clients joined"
        r"|(?P<error>Rendezvous\w+Error|Timed out waiting for clients)",
    ),
    line_kind(
        "group_join",
        (
            "init custom process group",
            "init weight transfer group",
            "init_weight_transfer_engine",
            "BroadcastInitInfo(",
            "init_weights_update_group",
        ),
        r"(?:master_addr(?:ess)?['\"]?[=:] ?['\"]?(?P<address>[\w.:\-]+?)['\"]?[,)} ].{0,60}?)?"
        r"(?:rank_offset['\"]?[=:] ?(?P<rank_offset>\d+).{0,40}?)?"
        r"(?:\brank['\"]?[=:] ?(?P<member>\d+).{0,10}?)?"
        + _WORLD
        + r"(?:.{0,10}group_name=(?P<group>[\w\-]+))?",
    ),
    line_kind(
        "rank_announced",
        "rank ",
        r"^rank (?P<rank>\d{1,6})/(?P<world_size>\d{1,6})(?: on (?P<host>[\w.\-]+))?\b",
    ),
)
