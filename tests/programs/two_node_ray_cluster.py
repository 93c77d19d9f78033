"""A Ray cluster of two nodes on this machine: says its address, ends when told anything.

Usage: two_node_ray_cluster.py CPUS_OF_EACH_NODE. Ends with its parent as well. Everything
stays on loopback addresses, one for each node.
"""

import os
import sys

from ray.cluster_utils import Cluster

from miles.utils.orphans import die_with_parent

die_with_parent(os.getppid())
node = {"num_cpus": int(sys.argv[1]), "object_store_memory": 80 * 1024**2}
cluster = Cluster(
    initialize_head=True,
    shutdown_at_exit=True,
    head_node_args=node | {"node_ip_address": "127.0.0.2", "include_dashboard": False},
)
cluster.add_node(node_ip_address="127.0.0.3", **node)
sys.stdout.write(f"{cluster.address}\n")
sys.stdout.flush()
sys.stdin.readline()
cluster.shutdown()
