"""The run's flags, one function a group of `--help`.

Each function adds one group to a parser. A default of None means that validation decides;
the help says how.
"""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction

from miles.utils.disk_offload import DEFAULT_DISK_CHUNK_MB, DEFAULT_DISK_DIR

ADVANTAGE_ESTIMATORS = (
    "grpo",
    "gspo",
    "reinforce_plus_plus",
    "reinforce_plus_plus_baseline",
    "ppo",
)


def add_cluster_arguments(parser: ArgumentParser) -> None:
    """Which processes take part, and how they find each other."""
    group = parser.add_argument_group(
        "cluster", "How many actor ranks train, how many GPUs (here: processes) roll out."
    )
    group.add_argument(
        "--train-backend",
        choices=("megatron", "fsdp"),
        default="megatron",
        help="What trains: flat Megatron-like buffers, or plain parameters. Default: %(default)s.",
    )
    group.add_argument(
        "--launcher",
        choices=("torchrun", "ray"),
        default="torchrun",
        help="What starts the ranks. ray needs the extra [ray]. Default: %(default)s.",
    )
    group.add_argument(
        "--ray-address",
        default=None,
        metavar="{auto,local,HOST:PORT}",
        help="Cluster for --launcher ray. auto joins the one on this machine, local starts one "
        "that ends with the run. Default: RAY_ADDRESS, else local.",
    )
    group.add_argument(
        "--actor-num-nodes", type=int, default=1, help="Nodes that train. Default: %(default)s."
    )
    group.add_argument(
        "--actor-num-gpus-per-node",
        type=int,
        default=2,
        help="Actor ranks on each of them. Default: %(default)s.",
    )
    group.add_argument(
        "--pipeline-model-parallel-size",
        type=int,
        default=1,
        help="Pipeline stages; each holds its share of the layers. Default: %(default)s.",
    )
    group.add_argument(
        "--rollout-external-engine-addrs",
        nargs="+",
        default=None,
        metavar="URL",
        help="Engines that run already, by index; none is started then.",
    )
    group.add_argument(
        "--rollout-num-gpus",
        type=int,
        default=None,
        help="GPUs for the rollout engines. With --colocate always the actor's; "
        "otherwise one engine's worth if not given.",
    )
    group.add_argument(
        "--rollout-num-gpus-per-engine",
        type=int,
        default=1,
        help="GPUs that share one rollout engine. Default: %(default)s.",
    )
    group.add_argument(
        "--distributed-backend",
        choices=("gloo",),
        default="gloo",
        help="torch.distributed backend of the actor's groups. Default: %(default)s.",
    )
    group.add_argument(
        "--distributed-timeout-minutes",
        type=int,
        default=10,
        help="Time-out of the actor's main group. The gloo group whose barriers frame the weight "
        "sync ignores it and keeps torch's 30 minutes. Default: %(default)s.",
    )


def add_offload_arguments(parser: ArgumentParser) -> None:
    """Who shares memory with whom, and what is released meanwhile."""
    group = parser.add_argument_group(
        "offload",
        "Trainer and engines may share GPUs; whoever is not at work releases its memory. "
        "Whatever is read meanwhile needs a copy: reading released memory waits for ever.",
    )
    group.add_argument(
        "--colocate",
        action="store_true",
        help="Trainer and engines share GPUs. Turns both offloads on unless told otherwise.",
    )
    group.add_argument(
        "--offload",
        action="store_true",
        help="Same as --offload-train --offload-rollout.",
    )
    group.add_argument(
        "--offload-train",
        action=BooleanOptionalAction,
        default=None,
        help="Release the trainer's memory while the engines generate. On by default with "
        "--colocate or --advantage-estimator ppo, off otherwise.",
    )
    group.add_argument(
        "--offload-rollout",
        action=BooleanOptionalAction,
        default=None,
        help="Release the engines' memory while the trainer trains. On by default with "
        "--colocate, off otherwise.",
    )
    group.add_argument(
        "--offload-train-target",
        choices=("cpu", "disk"),
        default="cpu",
        help="Where the trainer's released bytes are kept. disk saves host memory and needs the "
        "megatron backend and the weights backuper, since no one can read weights from there. "
        "Default: %(default)s.",
    )
    group.add_argument(
        "--offload-train-disk-dir",
        default=DEFAULT_DISK_DIR,
        help="Folder for the disk target. Nothing stays there. Default: %(default)s.",
    )
    group.add_argument(
        "--offload-train-disk-chunk-mb",
        type=int,
        default=DEFAULT_DISK_CHUNK_MB,
        help="MiB written or read at once with the disk target. Default: %(default)s.",
    )
    group.add_argument(
        "--stream-optimizer-state-to-disk",
        action="store_true",
        help="Keep the Adam moments on disk and stream them through each step. Needs the disk "
        "target and the distributed Adam optimizer.",
    )
    group.add_argument(
        "--disable-weights-backuper",
        dest="enable_weights_backuper",
        action="store_false",
        default=True,
        help="Keep no host copy of the weights apart from the memory saver's own. Saves host "
        "memory; refused where that other copy does not exist either.",
    )
    group.add_argument(
        "--memory-saver-backend",
        choices=("auto", "userfaultfd", "mprotect"),
        default="auto",
        help="How a read of released memory is made to wait on this CPU stand-in. auto takes "
        "userfaultfd, and mprotect where that is refused. Default: %(default)s.",
    )


def add_lora_arguments(parser: ArgumentParser) -> None:
    """Adapters in place of all weights."""
    group = parser.add_argument_group(
        "LoRA", "Freeze the base and train small adapters. Enabled by a rank or an adapter path."
    )
    group.add_argument(
        "--lora-rank", type=int, default=0, help="Rank of the adapters; 0 is no LoRA."
    )
    group.add_argument(
        "--lora-alpha",
        type=float,
        default=16.0,
        help="Adapters are scaled by alpha / rank. Default: %(default)s.",
    )
    group.add_argument(
        "--lora-adapter-path", default=None, help="Saved adapters to start from; enables LoRA."
    )
    group.add_argument(
        "--target-modules",
        default="all-linear",
        help="Comma-separated names of the layers that get adapters. Default: %(default)s.",
    )
    group.add_argument(
        "--lora-train-only",
        action="store_true",
        help="Train adapters, but let the engines serve merged weights.",
    )
    group.add_argument(
        "--lora-base-cpu-backup",
        action="store_true",
        help="Engines keep a host copy of the frozen base, so that it is sent only once.",
    )


def add_weight_sync_arguments(parser: ArgumentParser) -> None:
    """How weights reach the engines."""
    group = parser.add_argument_group(
        "weight sync", "After a step the engines are paused and given the new weights."
    )
    group.add_argument(
        "--update-weights-interval",
        type=int,
        default=1,
        help="Rollouts between two weight syncs. Default: %(default)s.",
    )
    group.add_argument(
        "--update-weight-transfer-mode",
        choices=("broadcast", "p2p", "disk-delta"),
        default="broadcast",
        help="Transfer to engines on other GPUs. p2p and disk-delta support neither --colocate "
        "nor LoRA. Default: %(default)s.",
    )
    group.add_argument(
        "--update-weight-buffer-size",
        type=int,
        default=512 * 1024**2,
        help="Most bytes in one chunk. Default: %(default)s.",
    )
    group.add_argument(
        "--pause-generation-mode",
        choices=("abort", "retract", "in_place"),
        default="retract",
        help="What becomes of requests in flight. Default: %(default)s.",
    )
    group.add_argument(
        "--weight-residency-audit",
        action=BooleanOptionalAction,
        default=True,
        help="Before weights are read, refuse those whose memory is released and that have no "
        "copy. Without it such a read waits for ever. On by default.",
    )


def add_model_arguments(parser: ArgumentParser) -> None:
    """The model and where its weights come from."""
    group = parser.add_argument_group("model", "A small transformer, or one of your own.")
    group.add_argument("--hidden-size", type=int, default=64, help="Default: %(default)s.")
    group.add_argument("--num-layers", type=int, default=2, help="Default: %(default)s.")
    group.add_argument("--vocab-size", type=int, default=64, help="Default: %(default)s.")
    group.add_argument(
        "--seq-length", type=int, default=16, help="Tokens a sample. Default: %(default)s."
    )
    group.add_argument(
        "--custom-model-provider-path",
        default=None,
        help="module.function that builds the model instead. LoRA that it adds by itself is "
        "invisible to the rules about LoRA; only the residency audit sees it.",
    )
    group.add_argument(
        "--ref-load", default=None, help="Checkpoint of a frozen reference model (tag ref)."
    )
    group.add_argument(
        "--keep-old-actor",
        action="store_true",
        help="Keep the previous weights as well (tag old_actor).",
    )


def add_training_arguments(parser: ArgumentParser) -> None:
    """The RL loop and its optimizer."""
    group = parser.add_argument_group("training", "A simple RL loop: generate, train, sync.")
    group.add_argument(
        "--num-rollout", type=int, default=3, help="Steps of the loop. Default: %(default)s."
    )
    group.add_argument(
        "--advantage-estimator",
        choices=ADVANTAGE_ESTIMATORS,
        default="grpo",
        help="ppo adds a critic that shares the actor's GPUs. Default: %(default)s.",
    )
    group.add_argument(
        "--global-batch-size",
        type=int,
        default=16,
        help="Samples a step over all ranks. Default: %(default)s.",
    )
    group.add_argument("--lr", type=float, default=1e-2, help="Default: %(default)s.")
    group.add_argument("--seed", type=int, default=1234, help="Default: %(default)s.")
    group.add_argument(
        "--optimizer", choices=("adam", "sgd"), default="adam", help="Default: %(default)s."
    )
    group.add_argument(
        "--use-distributed-optimizer",
        action="store_true",
        help="Each rank keeps its share of the optimizer state.",
    )


def add_debug_arguments(parser: ArgumentParser) -> None:
    """One half alone, and what to write down."""
    group = parser.add_argument_group("debug")
    group.add_argument(
        "--debug-train-only", action="store_true", help="Train on made-up rollouts, no engines."
    )
    group.add_argument(
        "--debug-rollout-only", action="store_true", help="Engines alone, nothing is trained."
    )
    group.add_argument(
        "--save-metrics",
        metavar="PATH",
        default=None,
        help="Write loss and sync times of each step there, one JSON object a line.",
    )


ARGUMENT_GROUPS = (
    add_cluster_arguments,
    add_offload_arguments,
    add_lora_arguments,
    add_weight_sync_arguments,
    add_model_arguments,
    add_training_arguments,
    add_debug_arguments,
)
