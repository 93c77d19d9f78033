"""The versions of what takes part, read from the installed packages' metadata.

Nothing is imported: an import could hang, and would change the process that is looked at.
"""

from __future__ import annotations

import platform
import re
from importlib import metadata

from watchdog.capture import proc
from watchdog.capture.target import Part, Target

NAME = "versions"

_PACKAGES = tuple(
    """
    torch nvidia-nccl-cu11 nvidia-nccl-cu12 nvidia-nccl-cu13 nvidia-cuda-runtime-cu12
    nvidia-cudnn-cu12 triton ray sglang sgl-kernel vllm megatron-core megatron-bridge mbridge
    transformer-engine torch-memory-saver flash-attn peft transformers accelerate deepspeed trl
    verl slime miles skyrl openrlhf areal nemo-rl prime-rl mooncake-transfer-engine numpy
    miles-watchdog py-spy
    """.split()  # noqa: SIM905
)


def collect(target: Target) -> Part:
    """The versions that this process uses; of another process nothing (it may use other ones)."""
    return Part(versions=installed()) if target.is_self else Part()


def installed() -> dict[str, str]:
    """Package to version for those of interest that are installed, then Python and the system."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    found["python"] = platform.python_version()
    found["kernel"] = platform.release()
    if driver := _nvidia_driver():
        found["nvidia driver"] = driver
    return found


def installed_in(site: str) -> dict[str, str]:
    """Package to version for those of interest in one `site-packages`, of whichever Python."""
    wanted = dict.fromkeys(_PACKAGES, "")
    for found in metadata.distributions(path=[site]):
        name = re.sub(r"[-_.]+", "-", found.metadata["Name"] or "").lower()
        if name in wanted:
            wanted[name] = found.version
    return {name: version for name, version in wanted.items() if version}


def _nvidia_driver() -> str:
    try:
        text = proc.read_text("/proc/driver/nvidia/version")
    except OSError:
        return ""
    match = re.search(r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", text)
    return match[1] if match else ""
