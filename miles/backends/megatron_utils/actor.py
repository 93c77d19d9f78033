"""One trainer rank: trains its share of a batch, sleeps, sends weights, wakes up."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor

from miles.backends.megatron_utils.engine_check import compare_with_engines
from miles.backends.megatron_utils.loss import Batch, PolicyLoss, policy_loss
from miles.backends.megatron_utils.model import setup_model_and_optimizer
from miles.backends.megatron_utils.parallel_state import initialise_parallel_state
from miles.backends.megatron_utils.schedule import forward_backward
from miles.backends.megatron_utils.update_weight.common import named_params_and_buffers
from miles.backends.megatron_utils.update_weight.update_weight_from_distributed.broadcast import (
    UpdateWeightFromDistributed,
)
from miles.backends.megatron_utils.update_weight.update_weight_from_distributed.delta import (
    UpdateWeightFromDiskDelta,
)
from miles.backends.megatron_utils.update_weight.update_weight_from_distributed.mixin import (
    DistBucketedWeightUpdateMixin,
)
from miles.backends.megatron_utils.update_weight.update_weight_from_distributed.p2p import (
    UpdateWeightP2P,
)
from miles.backends.megatron_utils.update_weight.update_weight_from_tensor import (
    UpdateWeightFromTensor,
)
from miles.backends.sglang_utils.sglang_engine import SGLangEngine
from miles.ray.train_actor import TrainRayActor
from miles.rollout.rollout_manager import Rollout
from miles.rollout.task import advantages
from miles.utils.distributed_utils import get_gloo_group
from miles.utils.lora import lora_rollout_enabled
from miles.utils.pausable_memory import torch_memory_saver
from miles.utils.reloadable_process_group import destroy_process_groups, reload_process_groups
from miles.utils.residency import audit_weights
from miles.utils.tensor_backper import TensorBackuper


class MegatronTrainRayActor(TrainRayActor):
    """The trainer's side of a run, on one rank.

    Every method is a collective of all ranks.

    Attributes:
        weights_backuper: Keeps the weights readable while the model sleeps.
    """

    def init(self, args: argparse.Namespace) -> None:
        """Build model, optimizer and backup, and go to sleep where memory is offloaded."""
        super().init(args)
        self._state = initialise_parallel_state(args)
        self._model, self._optimizer = setup_model_and_optimizer(args, self._state)
        self.weights_backuper = TensorBackuper.create(
            source_getter=self._named_weights,
            single_tag=None if args.enable_weights_backuper else "actor",
        )
        self.weights_backuper.backup("actor")
        self._weight_updater = _weight_updater_class(args)(
            args, lambda: self.weights_backuper.get("actor"), self._state
        )
        self._connected: list[str] | None = None
        if args.offload_train:
            self.sleep()

    def train(self, rollout_id: int, rollout: Rollout) -> dict[str, float]:
        """Take one optimizer step on a rollout, waking up first if need be.

        Args:
            rollout_id: Number of the rollout, from 0.
            rollout: All samples; each replica takes its share.

        Returns:
            `loss` and `logprob_difference`, means over all samples, the same on all ranks.
        """
        if self.args.offload_train:
            self.wake_up()
        if self.args.keep_old_actor:
            self.weights_backuper.copy("actor", "old_actor")
        batch = self._share(rollout)
        found: list[PolicyLoss] = []

        def objective(logits: Tensor) -> Tensor:
            found.append(policy_loss(logits, batch, self.args.advantage_estimator == "gspo"))
            return found[-1].objective

        self._optimizer.zero_grad()
        forward_backward(self._model, batch.tokens, objective, self._state)
        self._optimizer.step()
        self.weights_backuper.backup("actor")
        return self._means(found)

    def sleep(self) -> None:
        """Destroy the process groups and release the memory of the model.

        Where the engines serve adapters, the adapters' buffers stay: they are small, and
        read in each sync.
        """
        destroy_process_groups()
        torch_memory_saver.pause(self._offloaded_tag())

    def wake_up(self) -> None:
        """Undo `sleep`."""
        torch_memory_saver.resume(self._offloaded_tag())
        if self.args.enable_weights_backuper:
            # Regions without a backup of their own came back as zeros.
            self.weights_backuper.restore("actor")
        reload_process_groups()

    def update_weights(self, engines: list[SGLangEngine]) -> None:
        """Bring the engines up to date. The model stays asleep, if it is.

        Args:
            engines: All engines of the run, by index.

        Raises:
            WeightsUnavailableError: Weights cannot be read (residency audit).
            EngineError: An engine refused, failed, or is gone.
        """
        # With the backuper on, its own copies are read, and those are never paused.
        if not self.args.enable_weights_backuper:
            audit_weights(self._named_weights(), self.args)
        if self.args.offload_train:
            reload_process_groups()
        addresses = [engine.address for engine in engines]
        if self._connected != addresses:
            self._weight_updater.connect_rollout_engines(engines)
            dist.barrier(group=get_gloo_group())
            self._connected = addresses
        self._weight_updater.update_weights()
        if self.args.offload_train:
            destroy_process_groups()

    def check_engine_weights(self, engines: list[SGLangEngine]) -> int:
        """Compare what every engine holds with the live weights, tensor by tensor.

        Returns:
            Tensors compared on each engine; 0 on other ranks than 0.

        Raises:
            EngineError: An engine holds other weights; names the first tensor.
        """
        if self.args.offload_train:
            self.wake_up()
        return compare_with_engines(self.args, dict(self._named_weights()), engines)

    def _named_weights(self) -> Iterator[tuple[str, Tensor]]:
        yield from named_params_and_buffers(
            self.args, self._model, translate_gpu_to_cpu=not self.args.enable_weights_backuper
        )

    def _offloaded_tag(self) -> str | None:
        return "default" if lora_rollout_enabled(self.args) else None

    def _share(self, rollout: Rollout) -> Batch:
        compared = advantages(self.args.advantage_estimator, rollout.rewards)
        whole = (rollout.tokens, rollout.logprobs, rollout.rewards, compared)
        parts = [t.chunk(self._state.num_replicas)[self._state.replica] for t in whole]
        return Batch(*parts)

    def _means(self, found: list[PolicyLoss]) -> dict[str, float]:
        # Only last stages have a loss; all ranks take part, so that all know it.
        sums = torch.zeros(2)
        for each in found:
            sums += torch.stack([each.loss, each.logprob_difference])
        dist.all_reduce(sums, group=get_gloo_group())
        loss, difference = (sums / self._state.num_replicas).tolist()
        return {"loss": loss, "logprob_difference": difference}


def _weight_updater_class(
    args: argparse.Namespace,
) -> type[UpdateWeightFromTensor] | type[DistBucketedWeightUpdateMixin]:
    if args.colocate:
        return UpdateWeightFromTensor
    by_mode: dict[str, type[DistBucketedWeightUpdateMixin]] = {
        "broadcast": UpdateWeightFromDistributed,
        "p2p": UpdateWeightP2P,
        "disk-delta": UpdateWeightFromDiskDelta,
    }
    return by_mode[args.update_weight_transfer_mode]
