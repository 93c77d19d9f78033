"""Whether a run trains LoRA adapters, as far as its flags tell."""

from __future__ import annotations

from argparse import Namespace


def is_lora_enabled(args: Namespace) -> bool:
    """Whether the flags ask for LoRA: a rank above 0, or an adapter to load.

    A limit to know: adapters that a `--custom-model-provider-path` builds by itself are
    invisible here. Such a run passes validation as if it trained all weights; what its
    memory really holds is checked by `residency.audit_weights` before each weight sync.
    """
    return args.lora_rank > 0 or args.lora_adapter_path is not None


def lora_rollout_enabled(args: Namespace) -> bool:
    """Whether the rollout engines serve the adapters, rather than the base alone."""
    return is_lora_enabled(args) and not args.lora_train_only
