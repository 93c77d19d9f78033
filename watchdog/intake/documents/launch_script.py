"""Launch scripts and command lines: flags, variables, what is started and how."""

from __future__ import annotations

import json
import re

from watchdog.intake.blocks import Context
from watchdog.intake.documents.runtime_env import variables_of
from watchdog.intake.flags import flags_of_argv
from watchdog.intake.parts import Parts
from watchdog.intake.shell_text import Command, read_script
from watchdog.masking import mask_argv, mask_mapping, mask_text

MAX_CHARS = 2**20

_LAUNCHERS = re.compile(
    r"(?:^|[\s/])(?:python3?(?:\.\d+)?|torchrun|accelerate|deepspeed|srun|uv|ray|docker|podman|vllm|trl"
    r"|bash|sglang|rl|kubectl|mpirun)\s"
)
_FLAG = re.compile(r"(?:^|\s)--[a-z][\w\-]+(?=[\s=]|$)")
_OVERRIDE = re.compile(r"(?:^|\s)\+?[a-z_]+(?:\.[a-z_0-9]+)+=\S")
_PROSE = re.compile(r"^\s*(?:\[|\(|\d{4}-|Process \d|Thread |INFO|WARN|ERROR|Traceback)", re.M)
_INTERPRETERS = re.compile(
    r"(?:^|/)(?:python[\d.]*|torchrun|deepspeed|uv|accelerate|srun|env|bash)$"
)
_SHELL_NOISE = frozenset(
    [
        "set",
        "cd",
        "mkdir",
        "echo",
        "source",
        ".",
        "export",
        "sleep",
        "rm",
        "cp",
        "pkill",
        "kill",
        "ls",
        "cat",
        "if",
        "fi",
        "then",
        "else",
        "for",
        "do",
        "done",
        "[",
        "[[",
        ":",
        "true",
        "exit",
        "wait",
        "tee",
        "ulimit",
        "function",
        "trap",
        "pip",
        "sed",
        "grep",
        "nvidia-smi",
        "unset",
        "while",
    ]
)

# What a run prints: a traced shell, an error, a launcher's complaint. No script holds it.
_OF_A_LOG = re.compile(
    r"^(?:\+ \S|srun: |.{0,40}Traceback \(most recent call last\):)", re.MULTILINE
)


def score(head: str) -> float:
    """A shebang, or flags behind a command, or little but flags."""
    lines = [line for line in head.splitlines() if line.strip()]
    if not lines or len(_PROSE.findall(head)) * 4 > len(lines):
        return 0.0
    if _OF_A_LOG.search(head):
        return 0.0
    if re.match(r"#!.*\b(?:ba|z|da)?sh\b", lines[0]):
        return 0.9
    num_flags = len(_FLAG.findall(head)) + len(_OVERRIDE.findall(head))
    starts = bool(_LAUNCHERS.search("\n".join(lines[:40])))
    if starts and num_flags >= 2 and num_flags * 3 >= len(lines):
        return 0.8
    mostly_flags = sum(line.lstrip().startswith("--") for line in lines)
    return 0.7 if num_flags >= 2 and mostly_flags * 2 >= len(lines) else 0.0


def parse(text: str, context: Context, parts: Parts) -> None:
    """Flags of every command, exported variables, runtime environments."""
    if len(text) > MAX_CHARS:
        raise ValueError("too large for a script")
    script = read_script(text)
    parts.add_variables(mask_mapping(script.exported))
    used = bool(script.exported)
    for command in script.commands:
        used |= _read_command(command, context, parts)
    if not used:
        raise ValueError("no command with flags")
    for name, values in script.variables.items():
        if name.isupper() and name.split("_")[0] in _ENVIRONMENT and name in script.exported:
            parts.add_variables(mask_mapping({name: " ".join(values)}))


_ENVIRONMENT = ("NCCL", "GLOO", "CUDA", "PYTORCH", "TORCH", "RAY", "VLLM", "SGLANG", "MASTER")


def _read_command(command: Command, context: Context, parts: Parts) -> bool:
    argv = command.argv
    if argv[0] in _SHELL_NOISE:
        return False
    parts.add_variables(mask_mapping(command.variables))
    argv = _without_submission(argv, parts)
    program, rest = program_of(argv)
    if argv[:2] in (["docker", "run"], ["podman", "run"]):
        program = "docker run"
    origin = f"{context.file}:{command.line}" + (f" ({program})" if program else "")
    num = 0
    for flag in flags_of_argv(rest, origin):
        parts.add_flag(flag)
        num += 1
    if program and num:
        parts.add_note(f"{context.file}: starts {mask_text(' '.join(mask_argv(argv[:4])))[:160]}")
    return num > 0 or bool(command.variables)


def _without_submission(argv: list[str], parts: Parts) -> list[str]:
    """The submitted command behind `ray job submit … --`, its environment taken out."""
    for index, token in enumerate(argv):
        name, _, value = token.partition("=")
        if name in ("--runtime-env-json", "--runtime-env"):
            text = value or (argv[index + 1] if index + 1 < len(argv) else "")
            try:
                parts.add_variables(variables_of(json.loads(text)))
            except (ValueError, RecursionError):
                parts.add_variables(_loose_variables(text))
    if argv[0] == "ray" and "--" in argv:
        return argv[argv.index("--") + 1 :] or argv
    return argv


def _loose_variables(text: str) -> dict[str, str]:
    """Variables of a JSON that is none, because the shell would still have to fill it in."""
    found = re.findall(r'"([A-Z][A-Z0-9_]{2,80})"\s*:\s*"([^"]{0,500})"', text)
    return mask_mapping(dict(found))


def program_of(argv: list[str]) -> tuple[str, list[str]]:
    """What a command starts (`train.py`, `vllm serve`), and the words behind it."""
    index = 0
    while index < len(argv):
        word = argv[index]
        if word.endswith(".py"):
            return word.rsplit("/", 1)[-1], argv[index + 1 :]
        if word == "-m" and index + 1 < len(argv):
            return argv[index + 1], argv[index + 2 :]
        if word in ("vllm", "trl", "sglang") and index + 1 < len(argv):
            return " ".join(argv[index : index + 2]), argv[index + 2 :]
        if word.startswith("-") and not _INTERPRETERS.search(argv[0]):
            return argv[0] if index else "", argv[index:] if not index else argv[1:]
        index += 1
    return (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("", argv)
