"""Arguments of a run: parsing, and the combinations that cannot work."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence

from miles.utils.argument_groups import ARGUMENT_GROUPS
from miles.utils.lora import is_lora_enabled

logger = logging.getLogger(__name__)

_DESCRIPTION = """Train a small model by reinforcement learning and push its weights into
rollout engines after every step. Runs on CPUs: ranks and engines are processes."""


def get_miles_extra_args_provider() -> Callable[[ArgumentParser], ArgumentParser]:
    """A function that adds every flag to a parser, group by group, and returns the parser."""

    def add_miles_arguments(parser: ArgumentParser) -> ArgumentParser:
        for add_group in ARGUMENT_GROUPS:
            add_group(parser)
        return parser

    return add_miles_arguments


def parse_args(argv: Sequence[str] | None = None) -> Namespace:
    """Parse and validate a command line.

    Args:
        argv: Flags without the program's name; `None` takes `sys.argv`.

    Raises:
        AssertionError: The flags contradict each other; the message names them.
        SystemExit: A flag is unknown or malformed, or `--help` was asked for.
    """
    # No abbreviations: a flag must read the same in a launch script and in a report.
    parser = ArgumentParser(
        prog="python -m miles.train", description=_DESCRIPTION, allow_abbrev=False
    )
    args = get_miles_extra_args_provider()(parser).parse_args(argv)
    miles_validate_args(args)
    return args


def miles_validate_args(args: Namespace) -> None:
    """Fill in what is derived, and refuse what cannot work. Changes `args` in place.

    Adds `disable_grad_buffers_cpu_backup`, `disable_param_buffers_cpu_backup` (whether the
    memory saver keeps no host copy of those buffers), and turns `target_modules` into a
    list. Validating twice changes nothing more.

    Raises:
        AssertionError: A combination that cannot work; also under `python -O`.
    """
    _check_positive_numbers(args)
    _derive_debug_modes(args)
    _derive_offload(args)
    _derive_rollout_gpus(args)
    _derive_buffer_backups(args)
    # LoRA, colocated and offloaded: patch_param_grad_buffer_for_colocate_mode_lora() forces
    # the parameter buffers' host backup off in spite of the line above, and without the
    # backuper no other copy exists, so none does. update_weights() then reads paused
    # memory, which raises nothing: the rank hangs silently. All that shows is a time-out of
    # the other ranks' barrier up to 30 minutes later, which names no cause.
    _refuse(
        not args.enable_weights_backuper
        and args.offload_train
        and args.colocate
        and is_lora_enabled(args),
        "--disable-weights-backuper is not supported with LoRA + --colocate + --offload-train",
    )
    _check_disk_target(args)
    _check_streamed_optimizer(args)
    _check_transfer_mode(args)
    if isinstance(args.target_modules, str):
        args.target_modules = [each.strip() for each in args.target_modules.split(",")]


def _refuse(is_refused: bool, message: str) -> None:
    # Not the statement `assert`: these rules hold under python -O as well.
    if is_refused:
        raise AssertionError(message)


def _check_positive_numbers(args: Namespace) -> None:
    for name in (
        "actor_num_nodes",
        "actor_num_gpus_per_node",
        "rollout_num_gpus_per_engine",
        "pipeline_model_parallel_size",
        "update_weights_interval",
        "update_weight_buffer_size",
        "distributed_timeout_minutes",
    ):
        value = getattr(args, name)
        flag = "--" + name.replace("_", "-")
        _refuse(value <= 0, f"{flag} must be above 0, not {value}")
    _refuse(args.lora_rank < 0, f"--lora-rank must not be negative, it is {args.lora_rank}")


def _derive_debug_modes(args: Namespace) -> None:
    _refuse(
        args.debug_train_only and args.debug_rollout_only,
        "--debug-train-only and --debug-rollout-only exclude each other",
    )
    if args.debug_rollout_only:
        # Nobody trains, so nobody shares GPUs or has anything to release.
        args.colocate = args.offload = args.offload_train = args.offload_rollout = False


def _derive_offload(args: Namespace) -> None:
    if args.offload:
        args.offload_train = args.offload_rollout = True
    # With PPO the critic shares the actor's GPUs, so they take turns.
    trainers_share = args.advantage_estimator == "ppo"
    if args.offload_train is None:
        args.offload_train = args.colocate or trainers_share
    if args.offload_rollout is None:
        args.offload_rollout = args.colocate


def _derive_rollout_gpus(args: Namespace) -> None:
    if args.colocate:
        actor_gpus = args.actor_num_nodes * args.actor_num_gpus_per_node
        if args.rollout_num_gpus not in (None, actor_gpus):
            logger.info(
                "--rollout-num-gpus %d is replaced by the actor's %d GPUs, because of --colocate",
                args.rollout_num_gpus,
                actor_gpus,
            )
        args.rollout_num_gpus = actor_gpus
    elif args.rollout_num_gpus is None:
        args.rollout_num_gpus = 0 if args.debug_train_only else args.rollout_num_gpus_per_engine


def _derive_buffer_backups(args: Namespace) -> None:
    args.disable_grad_buffers_cpu_backup = False
    args.disable_param_buffers_cpu_backup = False
    if args.offload_train:
        # Gradients are made anew each step; parameters need one host copy, not two.
        args.disable_grad_buffers_cpu_backup = True
        args.disable_param_buffers_cpu_backup = args.enable_weights_backuper


def _check_disk_target(args: Namespace) -> None:
    if args.offload_train_target != "disk":
        return
    _refuse(not args.offload_train, "--offload-train-target disk requires --offload-train")
    _refuse(
        args.train_backend != "megatron",
        "--offload-train-target disk requires --train-backend megatron",
    )
    _refuse(
        not args.enable_weights_backuper,
        "--offload-train-target disk requires the weights backuper: "
        "remove --disable-weights-backuper",
    )
    _refuse(
        args.offload_train_disk_chunk_mb <= 0,
        "--offload-train-disk-chunk-mb must be above 0, "
        f"not {args.offload_train_disk_chunk_mb}, with --offload-train-target disk",
    )


def _check_streamed_optimizer(args: Namespace) -> None:
    if not args.stream_optimizer_state_to_disk:
        return
    _refuse(
        args.offload_train_target != "disk",
        "--stream-optimizer-state-to-disk requires --offload-train-target disk",
    )
    _refuse(
        args.optimizer != "adam" or not args.use_distributed_optimizer,
        "--stream-optimizer-state-to-disk requires the distributed Adam optimizer: "
        "--optimizer adam --use-distributed-optimizer",
    )
    _refuse(is_lora_enabled(args), "--stream-optimizer-state-to-disk is not supported with LoRA")


def _check_transfer_mode(args: Namespace) -> None:
    mode = args.update_weight_transfer_mode
    if mode not in ("p2p", "disk-delta"):
        return
    flag = f"--update-weight-transfer-mode {mode}"
    _refuse(args.colocate, f"{flag} is not supported with --colocate")
    _refuse(is_lora_enabled(args), f"{flag} is not supported with LoRA")
