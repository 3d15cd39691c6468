"""Throwaway clusters: real Kafka brokers on loopback, for tests, demo and rehearsal.

Belongs here: jars, a Java runtime, the engines, and the record of what runs. Forbidden here:
anything that could reach a cluster that this package did not start.
"""

from typing import TYPE_CHECKING

from reconciler.exports import export_lazily

if TYPE_CHECKING:
    from reconciler.sandbox.cluster import Cluster, start_cluster
    from reconciler.sandbox.control import (
        bring_up_sandbox,
        look_after,
        require_sandbox,
        start_broker,
        stop_broker,
        take_down_sandbox,
    )
    from reconciler.sandbox.jars import find_release, known_releases
    from reconciler.sandbox.launch import Java, find_java
    from reconciler.sandbox.places import (
        data_directory,
        isolated_python,
        read_file_limit,
        read_free_memory_mb,
        state_directory,
    )
    from reconciler.sandbox.record import SandboxRecord
    from reconciler.sandbox.shape import (
        BrokerState,
        BrokerStatus,
        ControllerStatus,
        EngineName,
        SandboxHealth,
        Silence,
        StartObserver,
        choose_controller_ids,
        describe_shape,
        read_shape,
        spread_brokers,
    )
else:
    __getattr__ = export_lazily(
        __name__,
        {
            "cluster": "Cluster start_cluster",
            "control": (
                "bring_up_sandbox look_after require_sandbox start_broker stop_broker "
                "take_down_sandbox"
            ),
            "jars": "find_release known_releases",
            "launch": "Java find_java",
            "places": (
                "data_directory isolated_python read_file_limit read_free_memory_mb state_directory"
            ),
            "record": "SandboxRecord",
            "shape": (
                "BrokerState BrokerStatus ControllerStatus EngineName StartObserver SandboxHealth "
                "Silence choose_controller_ids describe_shape read_shape spread_brokers"
            ),
        },
    )

__all__ = [
    "BrokerState",
    "BrokerStatus",
    "Cluster",
    "ControllerStatus",
    "EngineName",
    "Java",
    "SandboxHealth",
    "SandboxRecord",
    "Silence",
    "StartObserver",
    "bring_up_sandbox",
    "choose_controller_ids",
    "data_directory",
    "describe_shape",
    "find_java",
    "find_release",
    "isolated_python",
    "known_releases",
    "look_after",
    "read_file_limit",
    "read_free_memory_mb",
    "read_shape",
    "require_sandbox",
    "spread_brokers",
    "start_broker",
    "start_cluster",
    "state_directory",
    "stop_broker",
    "take_down_sandbox",
]
