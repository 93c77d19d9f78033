"""The facts of this machine that decide whether a launch hangs, and the versions installed here."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from watchdog.capture import proc
from watchdog.static_checks.launch import Host

_CAP_SYS_PTRACE = 19
_NETWORK_TYPES = ("nfs", "cifs", "smb", "lustre", "ceph", "gpfs", "fuse.", "beegfs", "9p", "weka")
_VIRTUAL = ("lo", "docker", "veth", "br-", "virbr", "cni", "flannel", "cali", "tunl", "dummy")
_CACHE_VARIABLES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "HOME")
_LOCKS = (
    ".cache/torch_extensions/*/*/lock",
    ".cache/flashinfer/*/*/tmp/*.lock",
    ".triton/**/*.lock",
)
_OLD_S = 3600.0
_MAX_LOCKS = 5
_FRAMEWORKS = ("miles", "slime")
_GIT_TIMEOUT_S = 5.0


def this_host(environ: Mapping[str, str]) -> Host:
    """Read them; what cannot be read stays unknown.

    Args:
        environ: Variables of the run: they name the folders of caches.
    """
    home = Path(environ.get("HOME") or "/nonexistent")
    return Host(
        interfaces=tuple(_interfaces()),
        shared_memory_bytes=_shared_memory(),
        network_folders=tuple(_network_folders(environ)),
        lock_files=tuple(_lock_files(home)),
        can_trace=_can_trace(),
        ephemeral_ports=_ephemeral_ports(),
        checkout_dates=_checkout_dates(),
    )


def _interfaces() -> Iterable[str]:
    for folder in sorted(Path("/sys/class/net").glob("*")):
        try:
            is_up = (folder / "operstate").read_text().strip() in ("up", "unknown")
        except OSError:
            continue
        if is_up and not folder.name.startswith(_VIRTUAL):
            yield folder.name


def _shared_memory() -> int | None:
    try:
        status = os.statvfs("/dev/shm")
    except OSError:
        return None
    return status.f_frsize * status.f_blocks


def _network_folders(environ: Mapping[str, str]) -> Iterable[str]:
    try:
        mounts = [line.split()[1:3] for line in proc.read_text("/proc/mounts").splitlines()]
    except OSError:
        return
    for name in _CACHE_VARIABLES:
        folder = environ.get(name, "")
        if not os.path.isabs(folder):
            continue
        above = [(where, kind) for where, kind in mounts if _is_below(folder, where)]
        kind = max(above, key=lambda entry: len(entry[0]), default=("", ""))[1]
        if kind.startswith(_NETWORK_TYPES):
            yield f"{name}={folder} is on {kind}"


def _is_below(folder: str, mount: str) -> bool:
    return mount == "/" or folder == mount or folder.startswith(mount + "/")


def _lock_files(home: Path) -> list[str]:
    found = []
    for pattern in _LOCKS:
        for path in home.glob(pattern):
            try:
                age_s = time.time() - path.stat().st_mtime
            except OSError:
                continue
            if age_s > _OLD_S:
                found.append(f"{path} is {age_s / 3600:.0f} h old")
            if len(found) >= _MAX_LOCKS:
                return found
    return found


def _can_trace() -> bool | None:
    try:
        lines = proc.read_text("/proc/self/status").splitlines()
        bits = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    except (OSError, StopIteration, ValueError):
        return None
    return bool(bits >> _CAP_SYS_PTRACE & 1)


def _ephemeral_ports() -> tuple[int, int]:
    try:
        first, last = proc.read_text("/proc/sys/net/ipv4/ip_local_port_range").split()
        return int(first), int(last)
    except (OSError, ValueError):
        return Host().ephemeral_ports


def _checkout_dates() -> dict[str, str]:
    """The day of the last commit of each framework that is used from a checkout."""
    found = {}
    for name in _FRAMEWORKS:
        try:
            spec = importlib.util.find_spec(name)  # of a top-level package: imports nothing
        except (ImportError, ValueError):
            continue
        if spec is None or not spec.submodule_search_locations:
            continue
        folder = next(iter(spec.submodule_search_locations))
        if os.path.isdir(os.path.join(os.path.dirname(folder), "watchdog")):
            continue  # the stand-in that is bundled with this program
        if day := _day_of_last_commit(folder):
            found[name] = day
    return found


def _day_of_last_commit(folder: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", folder, "log", "-1", "--format=%cs"], capture_output=True, text=True,
            timeout=_GIT_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
