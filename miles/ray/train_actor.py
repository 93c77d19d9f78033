"""What every trainer rank begins with: who it is, and the groups over all ranks.

Plain Python: under torchrun the loop calls it, under Ray `ray.remote(subclass)` does.
"""

from __future__ import annotations

import argparse
import datetime
import os
import socket

import torch
import torch.distributed as dist

from miles.utils.distributed_utils import init_gloo_group
from miles.utils.host_address import VARIABLE, host_address, network_interface


class TrainRayActor:
    """One trainer rank. Building it sets torch's rendezvous variables of this process.

    Args:
        world_size: Number of ranks.
        rank: Which of them this is.
        master_addr: Where rank 0 will listen; `None` on rank 0: on this host.
        master_port: Its port; `None` on rank 0: any free one, reserved until `init`.
        local_rank: Which rank of this host this is; `None` leaves the environment as it is.

    Attributes:
        rank: As given.
        args: The run's flags, from `init` on.
    """

    def __init__(
        self,
        world_size: int,
        rank: int,
        master_addr: str | None,
        master_port: int | None,
        local_rank: int | None = None,
    ) -> None:
        self.rank = rank
        self._reserved: socket.socket | None = None
        if master_addr is None or master_port is None:
            master_addr = host_address()
            self._reserved = _reserve_port(master_addr)
            master_port = self._reserved.getsockname()[1]
        self._master = (master_addr, master_port)
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = master_addr, str(master_port)
        os.environ["WORLD_SIZE"], os.environ["RANK"] = str(world_size), str(rank)
        if local_rank is not None:
            os.environ["LOCAL_RANK"] = str(local_rank)
        if VARIABLE in os.environ:
            _keep_gloo_on(host_address())

    def get_master_addr_and_port(self) -> tuple[str, int]:
        """Where rank 0 listens."""
        return self._master

    def init(self, args: argparse.Namespace) -> None:
        """Meet all other ranks. Blocks until they came."""
        self.args = args
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo", timeout=datetime.timedelta(minutes=args.distributed_timeout_minutes)
        )
        if self._reserved is not None:
            self._reserved.close()
        init_gloo_group()

    def leave(self) -> None:
        """Destroy all groups. A collective of all ranks; nothing works after it."""
        dist.destroy_process_group()


def _reserve_port(host: str) -> socket.socket:
    # Bound and not listening: the kernel gives the port to nobody else, and the store, which
    # sets SO_REUSEADDR as well, may still bind and listen there.
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind((host, 0))
    return reserved


def _keep_gloo_on(address: str) -> None:
    # gloo would take the address that the host's name resolves to, often a loopback one
    # that no other host reaches.
    interface = network_interface(address)
    if interface is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
