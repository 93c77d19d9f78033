"""Which node each rank and each engine runs on."""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from miles.launchers import RunFailedError
from miles.ray.environment import runtime_env
from miles.rollout.engine_process import num_engines

logger = logging.getLogger(__name__)

_ROOM_S = 30.0
# A rank and its colocated engine take turns on one "GPU", which is one CPU of a bundle here.
_SHARE = 0.5


@dataclass(frozen=True)
class Placement:
    """Reserved room for all actors of a run.

    Attributes:
        group: The reservation; held until it is removed or the driver ends.
        addresses: IP address of each bundle's node. The ranks' bundles come first, one for
            each of `--actor-num-nodes`; engines on devices of their own follow, one each.
        ranks_per_node: Ranks in one bundle.
        engine_bundles: Bundle of each engine, by its index.
    """

    group: PlacementGroup
    addresses: tuple[str, ...]
    ranks_per_node: int
    engine_bundles: tuple[int, ...]

    def options_of_rank(self, rank: int) -> dict[str, Any]:
        """Ray's options for the actor of a rank."""
        return self._options(rank // self.ranks_per_node)

    def options_of_engine(self, index: int) -> dict[str, Any]:
        """Ray's options for the control process of an engine."""
        return self._options(self.engine_bundles[index])

    def address_of_engine(self, index: int) -> str:
        """IP address of the node an engine runs on."""
        return self.addresses[self.engine_bundles[index]]

    def _options(self, bundle: int) -> dict[str, Any]:
        return {
            "num_cpus": _SHARE,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                self.group, placement_group_bundle_index=bundle
            ),
            "runtime_env": runtime_env(self.addresses[bundle]),
        }


def starts_engines(args: argparse.Namespace) -> bool:
    """Whether the run brings its own engines."""
    return not (args.debug_train_only or args.rollout_external_engine_addrs)


def bundles(args: argparse.Namespace) -> tuple[list[dict[str, float]], tuple[int, ...]]:
    """What to reserve: CPUs of each bundle, and the bundle of each engine.

    The ranks of a node share a bundle, and a bundle never spans nodes. Colocated engines
    live in the bundle of their first rank.
    """
    per_node, per_engine = args.actor_num_gpus_per_node, args.rollout_num_gpus_per_engine
    reserved = [{"CPU": float(per_node)} for _ in range(args.actor_num_nodes)]
    if not starts_engines(args):
        return reserved, ()
    if args.colocate:
        first_ranks = [index * per_engine for index in range(num_engines(args))]
        return reserved, tuple(rank // per_node for rank in first_ranks)
    own = range(len(reserved), len(reserved) + num_engines(args))
    return reserved + [{"CPU": 1.0} for _ in own], tuple(own)


def create_placement_groups(args: argparse.Namespace) -> Placement:
    """Reserve room on as many nodes as there are bundles, fewer where there are fewer.

    Raises:
        RunFailedError: The cluster has no such room within half a minute; says what it has.
    """
    reserved, engine_bundles = bundles(args)
    group = placement_group(reserved, strategy="SPREAD")
    if not group.wait(timeout_seconds=_ROOM_S):
        ray.util.remove_placement_group(group)
        free = ray.available_resources().get("CPU", 0.0)
        wanted = " + ".join(f"{each['CPU']:g}" for each in reserved)
        raise RunFailedError(
            f"the Ray cluster has no room for this run after {_ROOM_S:.0f} s: wanted {wanted} "
            f"CPUs, each sum on one node; {free:g} CPUs are free on {len(_nodes())} node(s)"
        )
    by_bundle = placement_group_table(group)["bundles_to_node_id"]
    nodes = _nodes()
    addresses = tuple(nodes[by_bundle[index]] for index in range(len(reserved)))
    logger.info("ranks on %s", ", ".join(addresses[: args.actor_num_nodes]))
    return Placement(group, addresses, args.actor_num_gpus_per_node, engine_bundles)


def _nodes() -> dict[str, str]:
    """Address of every node that is alive, by its id."""
    return {n["NodeID"]: n["NodeManagerAddress"] for n in ray.nodes() if n["Alive"]}
