"""For each check a launch that it fires at, and a look-alike at which it must be silent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from watchdog.evidence import Evidence
from watchdog.intake.blocks import Context
from watchdog.intake.documents import launch_script
from watchdog.intake.parts import Parts
from watchdog.static_checks.launch import Host, Launch
from watchdog.static_checks.reading import programs_of

ASYNC = "python train_async.py --hf-checkpoint x"
LORA = "python train.py --lora-rank 16 --colocate"
PROVIDER = "python train.py --custom-model-provider-path my.provider"
OLD = Host(checkout_dates={"miles": "2026-07-01"})
NEW = Host(checkout_dates={"miles": "2026-10-01"})
TWO_INTERFACES = Host(interfaces=("eth0", "ib0"))
BOUND = 'dist.init_process_group("nccl", device_id=torch.device("cuda", 0))'
UNBOUND = 'dist.init_process_group("nccl", timeout=t)'


@dataclass(frozen=True)
class Case:
    """One launch: its script, and what else is known."""

    script: str = "python train.py --hf-checkpoint x"
    host: Host | None = field(default_factory=Host)
    versions: dict[str, str] = field(default_factory=dict)
    source: str = ""

    def launch(self) -> Launch:
        parts = Parts()
        launch_script.parse(self.script, Context(file="run.sh"), parts)
        evidence = Evidence(
            "files", flags=tuple(parts.flags), environment=parts.environment, versions=self.versions
        )
        sources = {"train.py": self.source} if self.source else {}
        return Launch(evidence, programs_of(self.script, {}), sources, self.host)


def env(text: str, rest: str = "python train.py --colocate") -> str:
    return f"export {text}\n{rest}"


SLEEPS = "python train.py --offload-train --ref-load /r"
PIPELINE = "python train.py --pipeline-model-parallel-size 2 --rollout-num-gpus 8 --rollout-num-gpus-per-engine {}"  # noqa: E501
GRAPHS = "python train.py --colocate --rollout-num-gpus-per-engine 16 --num-gpus-per-node {}"
SERVER = "CUDA_VISIBLE_DEVICES={} trl vllm-serve --model x &\nCUDA_VISIBLE_DEVICES=2,3 accelerate launch train.py --use_vllm true"  # noqa: E501
EXPANDABLE = env("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
ENDS = "NCCL_CUMEM_ENABLE={} vllm serve --model x &\nNCCL_CUMEM_ENABLE=1 torchrun train.py --lr 1"

# Check: confidence, a case that fires, a case that is silent.
CASES: dict[str, tuple[str, Case, Case]] = {
    "lora_without_backuper": (
        "suspect",
        Case(f"{LORA} --disable-weights-backuper"),
        Case(LORA),
    ),
    "provider_without_backuper": (
        "suspect",
        Case(f"{PROVIDER} --colocate --offload-train --disable-weights-backuper"),
        Case(f"{PROVIDER} --colocate --offload-train"),
    ),
    "sleeping_trainer_without_copy": ("likely", Case(SLEEPS, OLD), Case(SLEEPS, NEW)),
    "time_out_ignored": (
        "certain",
        Case("python train.py --colocate --distributed-timeout-minutes 30", OLD),
        Case("python train.py --colocate --distributed-timeout-minutes 30", NEW),
    ),
    "disk_target_without_backuper": (
        "certain",
        Case("python train.py --offload-train-target disk --disable-weights-backuper"),
        Case("python train.py --offload-train-target disk --offload-train"),
    ),
    "retract_in_fully_async": (
        "suspect",
        Case(f"{ASYNC} --pause-generation-mode retract"),
        Case("python train.py --pause-generation-mode retract"),
    ),
    "in_place_without_quiescence": (
        "likely",
        Case(f"{ASYNC} --pause-generation-mode in_place"),
        Case(f"{ASYNC} --pause-generation-mode abort"),
    ),
    "adapter_unload_with_parallel_samples": (
        "likely",
        Case(f"{LORA} --n-samples-per-prompt 8", source="engine.unload_lora_adapter(name)"),
        Case(f"{LORA} --n-samples-per-prompt 1", source="engine.unload_lora_adapter(name)"),
    ),
    "speculation_with_update_from_tensor": (
        "suspect",
        Case("python train.py --colocate --sglang-speculative-algorithm EAGLE"),
        Case("python train.py --rollout-num-gpus 8 --sglang-speculative-algorithm EAGLE"),
    ),
    "graphs_registered_under_memory_saver": (
        "likely",
        Case(GRAPHS.format(8)),
        Case(env("NCCL_GRAPH_REGISTER=0", GRAPHS.format(8))),
    ),
    "pipeline_with_several_engines": (
        "suspect",
        Case(PIPELINE.format(4)),
        Case(PIPELINE.format(8)),
    ),
    "expandable_segments_without_ptrace": (
        "certain",
        Case(EXPANDABLE, Host(can_trace=False)),
        Case(EXPANDABLE, Host(can_trace=True)),
    ),
    "gloo_interface_unset": (
        "suspect",
        Case("python train.py --actor-num-nodes 2", TWO_INTERFACES),
        Case("python train.py --actor-num-nodes 1", TWO_INTERFACES),
    ),
    "gloo_interface_not_a_name": (
        "certain",
        Case(env("GLOO_SOCKET_IFNAME=^docker0,lo")),
        Case(env("GLOO_SOCKET_IFNAME=eth0\nexport NCCL_SOCKET_IFNAME=^docker0")),
    ),
    "virtual_interface_named": (
        "suspect",
        Case(env("NCCL_SOCKET_IFNAME=docker0")),
        Case(env("NCCL_SOCKET_IFNAME=^docker0,lo")),
    ),
    "transport_settings_differ": ("likely", Case(ENDS.format(0)), Case(ENDS.format(1))),
    "default_group_bound_to_device": ("suspect", Case(source=BOUND), Case(source=UNBOUND)),
    "same_device_in_trainer_and_server": (
        "certain",
        Case(SERVER.format("1,2")),
        Case(SERVER.format("0,1")),
    ),
    "port_in_ephemeral_range": (
        "suspect",
        Case("python train.py --master-port 45000"),
        Case("python train.py --master-port 29500"),
    ),
    "two_nccl_libraries": (
        "suspect",
        Case(versions={"nvidia-nccl-cu12": "2.27.5", "nvidia-nccl-cu13": "2.28.9"}),
        Case(versions={"nvidia-nccl-cu12": "2.27.5"}),
    ),
    "small_shared_memory": (
        "suspect",
        Case(host=Host(shared_memory_bytes=64 << 20)),
        Case(host=Host(shared_memory_bytes=64 << 30)),
    ),
    "caches_on_network_storage": (
        "suspect",
        Case(host=Host(network_folders=("HOME=/home/a is on nfs4",))),
        Case(host=Host()),
    ),
    "stale_lock_files": (
        "suspect",
        Case(host=Host(lock_files=("/root/.triton/x.lock is 3 h old",))),
        Case(host=Host()),
    ),
}

# What nothing here tells is no more than a suspicion.
UNKNOWN_HERE = {
    "sleeping_trainer_without_copy": replace(CASES["sleeping_trainer_without_copy"][1], host=None),
    "time_out_ignored": replace(CASES["time_out_ignored"][1], host=None),
    "expandable_segments_without_ptrace": Case(EXPANDABLE, None),
    "in_place_without_quiescence": Case("python train.py --pause-generation-mode in_place"),
    "adapter_unload_with_parallel_samples": Case(f"{LORA} --n-samples-per-prompt 8"),
}
