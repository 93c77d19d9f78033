"""HTTP calls to an engine, as its access log and its caller's errors show them.

What these lines do not say: an access line is written when the answer goes out, so a call that
hangs leaves none; 200 on `/health`, `/sleep` or an update says only that somebody answered.
"""

from __future__ import annotations

import re

from watchdog.intake.log_lines import LineKind, line_kind

_ACCESS = (
    r"\"(?P<method>GET|POST|PUT|DELETE) (?P<path>/(?:[\w\-]+/)*{route}/?)"
    r"(?:\?(?P<query>[^ \"]{{0,200}}))? HTTP/[\d.]+\" (?P<status>{status})"
)

# What is asked for, how every path of it begins, and the last part of the path.
_ROUTES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("pause", ("/pause", "/areal_pause"), r"(?:pause|pause_generation|areal_pause_generation)"),
    (
        "resume",
        ("/resume ", "/resume?", "/resume_gen", "/continue_gen", "/areal_continue"),
        r"(?:resume|continue_generation|resume_generation|areal_continue_generation)",
    ),
    ("flush", ("/flush_cache", "/reset_prefix_cache"), r"(?:flush_cache|reset_prefix_cache)"),
    ("sleep", ("/sleep", "/release_memory"), r"(?:sleep|release_memory_occupation)"),
    (
        "wake",
        ("/wake_up", "/wakeup", "/resume_memory"),
        r"(?:wake_up|wakeup|resume_memory_occupation)",
    ),
    ("abort", ("/abort",), r"(?:abort_requests?|abort)"),
    (
        "start_update",
        ("/start_weight_update", "/begin_weight_update", "/prepare_weights"),
        r"(?:start_weight_update|begin_weight_update|prepare_weights_update)",
    ),
    (
        "finish_update",
        ("/finish_weight_update", "/end_weight_update", "/update_weight_version"),
        r"(?:finish_weight_update|end_weight_update|update_weight_version)",
    ),
    ("load_lora", ("/load_lora", "/add_lora"), r"(?:load_lora_adapter\w*|add_lora)"),
    ("unload_lora", ("/unload_lora", "/remove_lora"), r"(?:unload_lora_adapter|remove_lora)"),
    (
        "init_group",
        ("/init_", "/areal_init_"),
        r"(?:init_weights_update_group|init_weight_transfer_engine|init_communicator"
        r"|init_broadcaster|areal_init_weights_update_group)",
    ),
    (
        "destroy_group",
        ("/destroy_weights", "/close_communicator"),
        r"(?:destroy_weights_update_group|close_communicator)",
    ),
    (
        "update",
        (
            "/update_weights",
            "/update_named_param",
            "/areal_update_weights",
            "/collective_rpc",
            "/batch_update_named",
            "/reload_weights",
        ),
        r"(?:update_weights\w*|update_named_param|areal_update_weights\w*|collective_rpc"
        r"|batch_update_named_params|reload_weights)",
    ),
)


def _route(op: str, literals: tuple[str, ...], route: str, status: str, stage: str) -> LineKind:
    pattern = _ACCESS.format(route=route, status=status)
    return line_kind("engine_control", literals, pattern, op=op, stage=stage)


LINES: tuple[LineKind, ...] = (
    *(_route(*route, r"[23]\d\d", "end") for route in _ROUTES),
    *(_route(*route, r"[45]\d\d", "error") for route in _ROUTES),
    line_kind(
        "group_kept",
        "already ",
        r"(?i:\bgroup\b.{0,60}?\balready (?:set|set up|exists|created|joined|initiali[sz]ed)\b"
        r".{0,60}?\b(?:skip|ignor|reus)\w*)",
    ),
    line_kind(
        "http_access",
        " HTTP/1",
        r"\"(?P<method>GET|POST|PUT|DELETE) (?P<path>/[^ ?\"]{0,200})\S{0,300} HTTP/[\d.]+\""
        r" (?P<status>\d{3})",
    ),
    line_kind(
        "engine_killed",
        ("Killing engine", "illing rollout engine", "Killing server"),
        r"[Kk]illing (?:rollout )?(?:engine|server)[ _#](?P<engine_index>\d{1,5})\b"
        r"(?P<detail>.{0,120})",
    ),
    line_kind(
        "engine_killed",
        "Killing actor",
        r"ealth check failed for (?:rollout )?(?:engine|server)[ _#](?P<engine_index>\d{1,5})\b"
        r".{0,160}?Killing actor(?P<detail>.{0,60})",
    ),
    line_kind(
        "engine_restarted",
        ("restarted", "recovered", "Recover", "Restart"),
        r"(?:engine[ _#](?P<engine_index>\d{1,5}) (?:was )?(?:restarted|recovered)"
        r"|(?:[Rr]estart|[Rr]ecover)(?:ed|ing) (?:rollout )?engine[ _#](?P<restarted>\d{1,5}))",
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
    return next((op for op, _, route in _ROUTES if re.fullmatch(route, name)), None)
