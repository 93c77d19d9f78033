"""The environment variables that decide how a process trains and talks."""

from __future__ import annotations

import os
from collections.abc import Mapping

from watchdog.capture import proc
from watchdog.capture.target import Part, Target
from watchdog.masking import mask_mapping

NAME = "environment"

_PREFIXES = (
    "AREAL_", "CUDA_", "FI_", "FSDP_", "GLOO_", "HIP_", "HSA_", "KINETO_", "MASTER_", "MEGATRON_",
    "MILES_", "MKL_", "MOONCAKE_", "NCCL_", "NVIDIA_", "NVSHMEM_", "NVTE_", "OMPI_", "PMI_",
    "PYTHON", "PYTORCH_", "RAY_", "RCCL_", "ROCR_", "SGLANG_", "SGL_", "SKYRL_", "SLIME_",
    "SLURM_", "TMS_", "TORCH", "TP_SOCKET_", "TRITON_", "TRL_", "UCX_", "VERL_", "VLLM_",
)  # fmt: skip
_NAMES = frozenset(
    """
    GROUP_RANK HOSTNAME http_proxy https_proxy HTTP_PROXY HTTPS_PROXY LD_LIBRARY_PATH LD_PRELOAD
    LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK no_proxy NO_PROXY OMP_NUM_THREADS RANK ROLE_RANK
    TMPDIR VIRTUAL_ENV WORLD_SIZE CONDA_PREFIX HF_HUB_OFFLINE
    """.split()  # noqa: SIM905
)
_MAX_VALUE_CHARS = 2000


def collect(target: Target) -> Part:
    """Those variables of one process that matter here, masked, by name.

    Of another process what it was started with; of this one what holds now.

    Raises:
        OSError: The process is gone, or its environment may not be read.
    """
    if target.is_self:
        return Part(environment=relevant(os.environ))
    if proc.state(target.pid) in ("", "Z", "X"):
        return Part()
    pairs = proc.read_text(f"/proc/{target.pid}/environ").split("\0")
    values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return Part(environment=relevant(values))


def relevant(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a training job among all, masked and clipped, by name."""
    kept = {
        name: environ[name][:_MAX_VALUE_CHARS]
        for name in sorted(environ)
        if name in _NAMES or name.startswith(_PREFIXES)
    }
    return mask_mapping(kept)
