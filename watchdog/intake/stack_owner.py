"""What kind of process a stack is of, where neither title nor environment says it."""

from __future__ import annotations

import re

from watchdog.evidence import Frame, StackSample

# Both keep the command line of the rank that forked them.
_HELPER_CALL = re.compile(r"_worker_loop|worker")
_HELPER_FILE = re.compile(
    r"torch/utils/data/(?:_utils/worker|dataloader)\.py$|stateful_dataloader/worker\.py$"
    r"|multiprocess(?:ing)?/pool\.py$|loky/process_executor\.py$"
)
_TRAINER_FILE = re.compile(
    r"(?:^|/)(?:torch/distributed/|deepspeed/|megatron/|transformers/(?:trainer|training_args)\.py"
    r"|accelerate/|lightning(?:_fabric)?/|pytorch_lightning/|torchtitan/|torchtune/|colossalai/)"
)
_ENGINE_FILE = re.compile(r"(?:^|/)(?:vllm|sglang|lmdeploy|tensorrt_llm|text_generation_server)/")
_LAUNCHER_FILE = re.compile(r"torch/distributed/(?:elastic|run|launch)|accelerate/commands/launch")


def is_of_helper(stack: StackSample) -> bool:
    """Whether it is of a data loader's or pool's worker, which is no rank whoever forked it."""
    return any(
        _HELPER_CALL.fullmatch(frame.function) and _HELPER_FILE.search(frame.file)
        for frame in _main_frames(stack)
    )


def is_of_trainer(stack: StackSample) -> bool:
    """Whether a training library's calls are on its main thread, and no engine's."""
    frames = _main_frames(stack)
    if any(_ENGINE_FILE.search(f.file) or _LAUNCHER_FILE.search(f.file) for f in frames):
        return False
    return any(_TRAINER_FILE.search(frame.file) for frame in frames)


def _main_frames(stack: StackSample) -> tuple[Frame, ...]:
    """Frames of the thread that stands first; the main thread where it is known."""
    return next((thread.frames for thread in stack.threads if thread.frames), ())
