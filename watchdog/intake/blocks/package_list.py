"""`pip list`, `pip freeze`, hand-written version lists, and NCCL libraries that are mapped."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, ProcessPart

LINE_LITERALS = ()  # not what logs hold
MAX_PACKAGES = 3_000

_PACKAGE = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_.\-]{1,80})(?:==|\s{2,}| )"
    r"v?(?P<version>\d+(?:\.\w+){1,6}(?:[+\-]\w[\w.]*)?)"
    r"(?:\s+\S{0,200}|\s*\([\w ]{1,40}\))?\s*$"
)
_KNOWN = re.compile(
    r"(?:torch|nvidia-|vllm|sglang|ray|triton|megatron|transformer|flash|numpy|trl|verl|deepspeed"
    r"|accelerate|transformers|nemo|miles|slime|python|cuda|nccl|driver)"
)
_HEADER = re.compile(r"Package\s+Version|-{5,}\s+-{5,}")
_LIBRARY = re.compile(
    r"(?:[0-9a-f]{6,16}-[0-9a-f]{6,16} .{1,80} )?(?P<path>/\S*/libnccl[\w.\-]*\.so[\w.]*)$"
)
_LIBRARY_VERSION = re.compile(r"\.so\.(\d+\.\d+[\d.]*)$")
_UNAME = re.compile(r"Linux (?P<release>\d[\w.\-]+) (?P<machine>aarch64|x86_64|arm64|ppc64le)\s*$")
_DRIVER = re.compile(r"driver (?P<version>\d{3}\.[\d.]+)")


def opens(text: str) -> bool:
    """A package that training uses, the list's header, a mapped NCCL, `uname`'s line."""
    if len(text) > 400:
        return False
    if _HEADER.match(text) or _LIBRARY.match(text) or _UNAME.match(text) or _DRIVER.match(text):
        return True
    match = _PACKAGE.match(text)
    return bool(match and (_KNOWN.match(match["name"]) or "==" in text))


def continues(text: str, block: Block) -> bool:
    """Further packages."""
    if len(block.lines) > MAX_PACKAGES or _LIBRARY.match(block.lines[0]):
        return False
    return bool(_PACKAGE.match(text) or _HEADER.match(text) or _DRIVER.match(text))


def parse(block: Block, parts: Parts) -> None:
    """Versions of the job; the library that a process maps goes to that process."""
    versions: dict[str, str] = {}
    for line in block.lines:
        library = _LIBRARY.match(line)
        if library:
            _library(library["path"], block, parts)
        elif uname := _UNAME.match(line):
            versions |= {"kernel": uname["release"], "machine": uname["machine"]}
        elif driver := _DRIVER.match(line):
            versions["nvidia-driver"] = driver["version"].rstrip(".,")
        elif package := _PACKAGE.match(line):
            versions[package["name"].lower().replace("_", "-")] = package["version"]
    parts.add_versions(versions)


def _library(path: str, block: Block, parts: Parts) -> None:
    context = block.context
    if context.who.pid is None:
        return
    found = {"libnccl.so": path}
    version = _LIBRARY_VERSION.search(path)
    if version:
        found["nccl"] = version[1]
    parts.add_process(
        ProcessPart(
            who=context.who,
            file_who=context.file_who,
            file=context.file,
            moment=context.moment,
            order=context.order,
            versions=found,
        )
    )
