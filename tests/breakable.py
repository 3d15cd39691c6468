"""Faults of single nodes, brokers and controllers alike: a kill, a freeze, and its end.

Each node needs a process of its own: start the cluster with `isolate`. The others notice a dead or
frozen broker after some seconds.
"""

from __future__ import annotations

import os
import signal
import time

from reconciler.sandbox.cluster import Cluster
from reconciler.sandbox.container import ContainerCluster
from reconciler.sandbox.request import BrokerState


def kill_node(cluster: Cluster, node_id: int) -> None:
    """End a node without warning (SIGKILL), and wait until its process is gone."""
    if isinstance(cluster, ContainerCluster):
        cluster.find_container(node_id).kill()
    else:
        os.kill(_find_process(cluster, node_id), signal.SIGKILL)
    while node_id in cluster.process_ids:
        time.sleep(0.01)


def freeze_node(cluster: Cluster, node_id: int) -> None:
    """Freeze a node (SIGSTOP), and wait until it runs no more: its connections get no answer."""
    if isinstance(cluster, ContainerCluster):
        cluster.find_container(node_id).pause()
    else:
        os.kill(_find_process(cluster, node_id), signal.SIGSTOP)
    while not _is_frozen(cluster, node_id):
        time.sleep(0.01)


def thaw_node(cluster: Cluster, node_id: int) -> None:
    """Resume a frozen node."""
    if isinstance(cluster, ContainerCluster):
        cluster.find_container(node_id).unpause()
    else:
        os.kill(_find_process(cluster, node_id), signal.SIGCONT)


def _is_frozen(cluster: Cluster, node_id: int) -> bool:
    nodes = (*cluster.statuses(), *cluster.controller_statuses())
    return any(node.id == node_id and node.state is BrokerState.FROZEN for node in nodes)


def _find_process(cluster: Cluster, node_id: int) -> int:
    """Return the process of a node that shares it with no other."""
    processes = cluster.process_ids
    found = processes[node_id]
    assert list(processes.values()).count(found) == 1, "start the cluster with isolate"
    return found
