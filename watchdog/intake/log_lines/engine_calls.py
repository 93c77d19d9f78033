"""HTTP calls to an engine, as its access log and its caller's errors show them.

What these lines do not say: an access line is written when the answer goes out, so a call that
hangs leaves none; 200 on `/health`, `/sleep` or an update says only that somebody answered.
"""

from __future__ import annotations

import re

from watchdog.intake.log_lines import LineKind, line_kind

_ACCESS = r"\"(?P<method>GET|POST|PUT|DELETE) (?P<path>/(?:[\w\-]+/)*{route}/?)(?:\?(?P<query>[^ \"]{{0,200}}))? HTTP/[\d.]+\" (?P<status>{status})"

# Last part of the path, as each engine spells it, and what it asks for.
_ROUTES: tuple[tuple[str, str], ...] = (
    ("pause", r"(?:pause|pause_generation|areal_pause_generation)"),
    ("resume", r"(?:resume|continue_generation|resume_generation|areal_continue_generation)"),
    ("flush", r"(?:flush_cache|reset_prefix_cache)"),
    ("sleep", r"(?:sleep|release_memory_occupation)"),
    ("wake", r"(?:wake_up|wakeup|resume_memory_occupation)"),
    ("abort", r"(?:abort_requests?|abort)"),
    ("start_update", r"(?:start_weight_update|begin_weight_update|prepare_weights_update)"),
    ("finish_update", r"(?:finish_weight_update|end_weight_update|update_weight_version)"),
    ("load_lora", r"(?:load_lora_adapter\w*|add_lora)"),
    ("unload_lora", r"(?:unload_lora_adapter|remove_lora)"),
    (
        "init_group",
        r"(?:init_weights_update_group|init_weight_transfer_engine|init_communicator"
        r"|init_broadcaster|areal_init_weights_update_group)",
    ),
    ("destroy_group", r"(?:destroy_weights_update_group|close_communicator)"),
    (
        "update",
        r"(?:update_weights\w*|update_named_param|areal_update_weights\w*|collective_rpc"
        r"|batch_update_named_params|reload_weights)",
    ),
)


def _route(op: str, route: str, status: str, stage: str) -> LineKind:
    pattern = _ACCESS.format(route=route, status=status)
    return line_kind("engine_control", " HTTP/1", pattern, op=op, stage=stage)


LINES: tuple[LineKind, ...] = (
    *(_route(op, route, r"[23]\d\d", "end") for op, route in _ROUTES),
    *(_route(op, route, r"[45]\d\d", "error") for op, route in _ROUTES),
    line_kind(
        "http_access",
        " HTTP/1",
        r"\"(?P<method>GET|POST|PUT|DELETE) (?P<path>/[^ ?\"]{0,200})\S{0,300} HTTP/[\d.]+\""
        r" (?P<status>\d{3})",
    ),
    line_kind(
        "http_timeout",
        ("ReadTimeout", "Read timed out", "ConnectTimeout", "Max retries exceeded"),
        r"(?P<error>ReadTimeout|Read timed out|ConnectTimeout\w*|Max retries exceeded)",
    ),
)


def control_op(method_or_route: str) -> str | None:
    """The `op` of an engine's method or route, `None` if it steers nothing."""
    name = method_or_route.strip("/").rsplit("/", 1)[-1]
    return next((op for op, route in _ROUTES if re.fullmatch(route, name)), None)
