"""`env`, `/proc/<pid>/environ`, `/etc/hosts` and `ip addr`: variables and interfaces of a host."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block
from watchdog.intake.parts import NOBODY, Parts, ProcessPart, RawEvent, Who
from watchdog.masking import mask_mapping

_PREFIXES = [
    "NCCL_",
    "GLOO_",
    "CUDA_",
    "PYTORCH_",
    "TORCH_",
    "RAY_",
    "VLLM_",
    "SGLANG_",
    "MASTER_",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "FI_",
    "UCX_",
    "TP_",
    "OMP_",
    "HF_",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "TMS_",
    "MILES_",
    "SLURM_",
    "HOSTNAME",
    "PYTHONPATH",
]
LINE_LITERALS = ()  # not what logs hold

_VARIABLE = re.compile(r"(?:export |declare -x )?(?P<name>[A-Z_][A-Z0-9_]{1,80})=(?P<value>.*)$")
_ADDRESS = re.compile(
    r"(?P<name>[a-z][\w.@\-]{0,30})\s+(?P<state>UP|DOWN|UNKNOWN)\s+(?P<address>[\da-f.:]+/\d+.*)$"
)
_HOSTS = re.compile(
    r"(?P<address>127\.[\d.]+|::1|\d{1,3}(?:\.\d{1,3}){3})\s+(?P<names>[A-Za-z][\w.\- \t]*)$"
)


def opens(text: str) -> bool:
    """A variable, an interface, a line of the hosts file."""
    return bool(_VARIABLE.match(text) or _ADDRESS.match(text) or _HOSTS.match(text))


def continues(text: str, block: Block) -> bool:
    """Lines of the same three forms."""
    return opens(text)


def parse(block: Block, parts: Parts) -> None:
    """Variables to their process or the job; `host_interface` and `host_name` events."""
    context = block.context
    variables: dict[str, str] = {}
    for offset, line in enumerate(block.lines):
        variable = _VARIABLE.match(line)
        address, hosts = _ADDRESS.match(line), _HOSTS.match(line)
        if variable:
            variables[variable["name"]] = variable["value"].strip("'\"")[:2000]
            continue
        found = address or hosts
        if not found:
            continue
        kind = "host_interface" if address else "host_name"
        parts.add_event(
            RawEvent(
                kind=kind,
                text=line.strip()[:300],
                file=context.file,
                line=block.number + offset,
                moment=context.moment,
                who=context.who.or_else(context.file_who),
                fields={key: value.strip() for key, value in found.groupdict().items()},
            )
        )
    known = {name for name in variables if name.startswith(tuple(_PREFIXES))}
    if len(variables) < 3:
        variables = {name: value for name, value in variables.items() if name in known}
    if not variables or not known:
        return
    masked = mask_mapping(variables)
    who = context.who
    if who.pid is None:
        parts.add_variables(masked)
        host = variables.get("HOSTNAME", "")
        who = Who(host=host, by=("HOSTNAME in the environment",)) if host else NOBODY
        rank = variables.get("RANK", "")
        if rank.isdigit() and len(rank) < 7:
            who = who.or_else(Who(rank=int(rank), role="trainer", by=("RANK in the environment",)))
    parts.add_process(
        ProcessPart(
            who=who,
            file_who=context.file_who,
            file=context.file,
            moment=context.moment,
            order=context.order,
            environment=masked,
        )
    )
