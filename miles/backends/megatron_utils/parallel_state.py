"""Which rank holds which layers, and the groups in which ranks compute together.

Ranks are laid out as Megatron does: data-parallel replicas of a stage are neighbours,
pipeline stages are apart. Four ranks in two stages: stage 0 is {0, 1}, stage 1 is {2, 3}.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch.distributed as dist

from miles.utils.reloadable_process_group import ReloadableProcessGroup


@dataclass(frozen=True)
class ParallelState:
    """This rank's place.

    Attributes:
        stage: Pipeline stage, from 0.
        num_stages: Pipeline stages.
        replica: Which of the stage's data-parallel replicas, from 0.
        stage_ranks: For every stage its global ranks, ascending.
        layers: The decoder layers of this stage.
        data_parallel: The replicas of this stage.
        pipeline: One replica of every stage.
    """

    stage: int
    num_stages: int
    replica: int
    stage_ranks: list[list[int]]
    layers: range
    data_parallel: ReloadableProcessGroup
    pipeline: ReloadableProcessGroup

    @property
    def num_replicas(self) -> int:
        """Data-parallel replicas of each stage."""
        return len(self.data_parallel.ranks)


def initialise_parallel_state(args: argparse.Namespace) -> ParallelState:
    """Lay out the ranks of WORLD. A collective.

    Raises:
        ValueError: Ranks, layers or samples cannot be shared out evenly.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    num_stages = args.pipeline_model_parallel_size
    num_replicas = world_size // num_stages
    if num_replicas * num_stages != world_size or args.num_layers % num_stages:
        raise ValueError(
            f"--pipeline-model-parallel-size {num_stages} divides {world_size} ranks or "
            f"{args.num_layers} layers unevenly"
        )
    if args.global_batch_size % num_replicas:
        raise ValueError(
            f"--global-batch-size {args.global_batch_size} must be a multiple of the "
            f"{num_replicas} replicas"
        )
    stages = [list(range(s * num_replicas, (s + 1) * num_replicas)) for s in range(num_stages)]
    pipelines = [list(ranks) for ranks in zip(*stages, strict=True)]
    stage, replica = divmod(rank, num_replicas)
    # Every rank makes every group, in one order.
    data_parallel = [ReloadableProcessGroup(ranks) for ranks in stages][stage]
    pipeline = [ReloadableProcessGroup(ranks) for ranks in pipelines][replica]
    num_layers = args.num_layers // num_stages
    layers = range(stage * num_layers, (stage + 1) * num_layers)
    return ParallelState(stage, num_stages, replica, stages, layers, data_parallel, pipeline)
