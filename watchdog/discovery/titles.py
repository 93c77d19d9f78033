"""What a process is, by its title or command line: one table for live processes and for logs."""

from __future__ import annotations

import re

from watchdog.evidence import Role

_TRAINERS = re.compile(
    r"TrainRayActor|PolicyWorker|(?:Actor|Policy|Critic|Reference|Reward)Model\w*Actor|FSDPActor"
    r"|MegatronActor|ActorWorker|WorkerDict|RefWorker|CriticWorker|Train(?:ing)?Worker"
    r"|PRIME-RL::Trainer"
)
_ENGINES = re.compile(
    r"SGLangEngine|SGLangHttpServer|vLLMHttpServer|VLLMEngine|VLLMServerActor|RolloutRayActor"
    r"|GenerationWorker|LLMRayActor|RolloutWorker|APIServer|EngineCore|InferenceEngine"
    r"|sglang::|sglang\.launch_server|vllm serve|vllm-serve|PRIME-RL::Inference"
)
_ENGINE_WORKERS = re.compile(
    r"sglang::schedul|VLLM::Worker|^Worker(?:_|$)|VllmWorker|RayWorkerWrapper"
)
_DRIVERS = re.compile(
    r"TaskRunner|entrypoint|PPOTrainer|RolloutManager|run_grpo|Orchestrator|TrainingActor\b"
)
_LAUNCHERS = re.compile(r"torchrun|torch\.distributed\.run|pt_elastic|accelerate launch|srun\b")
_OTHERS = re.compile(
    r"raylet|gcs_server|dashboard|ray::IDLE|RuntimeEnvAgent|detokenizer"
    r"|(?:Agent|Reward)LoopWorker|RewardManager"
)

_ROLES: tuple[tuple[re.Pattern[str], Role], ...] = (
    (_ENGINE_WORKERS, "engine_worker"),
    (_OTHERS, "other"),
    (_ENGINES, "engine"),
    (_TRAINERS, "trainer"),
    (_DRIVERS, "driver"),
    (_LAUNCHERS, "launcher"),
)
_INSIDE = re.compile(r"_(DP|PP|TP|EP)(\d{1,4})")
_ACTOR_NAME = re.compile(r"ray::(?P<name>[\w\-]+?)[-_](?P<index>\d{1,5}):")


def role_by_process_name(name: str) -> Role | None:
    """Part in the job by a process title, command line or actor class, `None` if unknown."""
    return next((role for pattern, role in _ROLES if pattern.search(name)), None)


def parallel_ranks(title: str) -> dict[str, int]:
    """The parts of an engine's title: `VLLM::Worker_DP0_TP1` as `{"DP": 0, "TP": 1}`."""
    return {part: int(number) for part, number in _INSIDE.findall(title)}


def actor_index(title: str) -> int | None:
    """The number in the name of a Ray actor, `ray::lm_policy-3:Class.method`, else `None`."""
    match = _ACTOR_NAME.match(title)
    return int(match["index"]) if match else None
