"""Builds one pipeline stage and its optimizer, in pausable memory where it is offloaded."""

from __future__ import annotations

import argparse
import contextlib
import importlib
from collections.abc import Callable

import torch

from miles.backends.megatron_utils.lora_utils import (
    apply_lora,
    patch_param_grad_buffer_for_colocate_mode_lora,
)
from miles.backends.megatron_utils.optimizer import FlatOptimizer
from miles.backends.megatron_utils.parallel_state import ParallelState
from miles.backends.megatron_utils.param_and_grad_buffer import (
    DistributedDataParallelConfig,
    ParamAndGradBuffer,
)
from miles.models.transformer import Transformer, TransformerConfig, initialise
from miles.utils.lora import is_lora_enabled
from miles.utils.pausable_memory import torch_memory_saver

ModelProvider = Callable[[argparse.Namespace, range], Transformer]


def setup_model_and_optimizer(
    args: argparse.Namespace, state: ParallelState
) -> tuple[Transformer, FlatOptimizer]:
    """Build what this rank trains.

    With `--offload-train`, trained parameters and their gradients lie in the regions
    `param_buffer` and `grad_buffer`, everything else in `default`, which has a backup.

    Args:
        args: The run's flags. Where `--lora-adapter-path` alone enables LoRA, `lora_rank`
            is set to the rank found there.
        state: Where this rank stands.
    """
    if is_lora_enabled(args) and args.colocate:
        patch_param_grad_buffer_for_colocate_mode_lora()
    with _everything_else(args):
        model = _model(args, state.layers)
        buffer = ParamAndGradBuffer(
            DistributedDataParallelConfig.from_args(args), list(model.named_parameters())
        )
        return model, FlatOptimizer(args, buffer, state.data_parallel)


def _everything_else(args: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    if not args.offload_train:
        return contextlib.nullcontext()
    torch_memory_saver.configure(
        backend=args.memory_saver_backend,
        backup_target=args.offload_train_target,
        disk_dir=args.offload_train_disk_dir,
        disk_chunk_mb=args.offload_train_disk_chunk_mb,
    )
    return torch_memory_saver.region("default", enable_cpu_backup=True)


def _model(args: argparse.Namespace, layers: range) -> Transformer:
    provider: ModelProvider = model_provider
    if args.custom_model_provider_path:
        provider = load_function(args.custom_model_provider_path)
    model = provider(args, layers)
    saved: dict[str, torch.Tensor] = {}
    if args.lora_adapter_path:
        saved = torch.load(args.lora_adapter_path, weights_only=True)
        ranks = {tensor.shape[0] for name, tensor in saved.items() if name.endswith("lora_A")}
        (args.lora_rank,) = ranks
    if is_lora_enabled(args):
        apply_lora(model, args.lora_rank, args.lora_alpha, args.target_modules)
    initialise(model, args.seed)
    mine = model.state_dict().keys()
    model.load_state_dict({n: t for n, t in saved.items() if n in mine}, strict=False)
    return model


def model_provider(args: argparse.Namespace, layers: range) -> Transformer:
    """Build one stage of the model that the flags describe.

    Args:
        args: The run's flags.
        layers: The decoder layers of the stage.
    """
    config = TransformerConfig(args.vocab_size, args.hidden_size, args.num_layers, args.seq_length)
    return Transformer(config, layers)


def load_function(path: str) -> ModelProvider:
    """Import `package.module.function`.

    Raises:
        ValueError: The path has no module part.
        ImportError: There is no such module.
        AttributeError: The module has no such function.
    """
    module, _, name = path.rpartition(".")
    if not module:
        raise ValueError(f"--custom-model-provider-path must be module.function, not {path}")
    function: ModelProvider = getattr(importlib.import_module(module), name)
    return function
