"""A throwaway cluster: the start options, and the operations on a running one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reconciler.model.cluster import Broker
from reconciler.sandbox.jars import find_release
from reconciler.sandbox.paths import open_run
from reconciler.sandbox.request import (
    NOTHING,
    BrokerStatus,
    ClusterRequest,
    ControllerStatus,
    EngineName,
    Silence,
    StartObserver,
    describe_shape,
    spread_brokers,
)

if TYPE_CHECKING:
    from reconciler.sandbox.container import ContainerCluster
    from reconciler.sandbox.embedded import EmbeddedCluster


class Cluster(Protocol):
    """A cluster that runs. Methods wait until the other brokers know. Errors: SandboxError."""

    cluster_id: str
    kafka_version: str
    directory: Path

    @property
    def bootstrap_servers(self) -> str:
        """Every broker's plaintext address, for a client's bootstrap.servers."""
        ...

    def addresses(self, listener: str = "PLAINTEXT") -> Mapping[int, str]:
        """Return host:port of a listener, by broker id."""
        ...

    @property
    def process_ids(self) -> Mapping[int, int]:
        """The process of each node that runs, by the node's id. Without isolate, all share one."""
        ...

    def statuses(self) -> tuple[BrokerStatus, ...]:
        """Return the state of every broker."""
        ...

    def controller_statuses(self) -> tuple[ControllerStatus, ...]:
        """Return the state of every controller, and which one is active."""
        ...

    def stop_broker(self, broker_id: int) -> None:
        """Shut a broker down as an operator would."""
        ...

    def start_broker(self, broker_id: int) -> None:
        """Start a broker that is stopped or dead."""
        ...

    def stop_controller(self, controller_id: int) -> None:
        """Shut a controller down as an operator would."""
        ...

    def start_controller(self, controller_id: int) -> None:
        """Start a controller that is stopped or dead."""
        ...


@contextmanager
def start_cluster(  # noqa: PLR0913 - each is a property of the cluster, and optional
    brokers: int = 3,
    racks: int | None = None,
    *,
    shape: Sequence[Broker] | None = None,
    engine: str = EngineName.EMBEDDED,
    isolate: bool = False,
    controllers: int = 1,
    kafka_version: str | None = None,
    image: str | None = None,
    listeners: Mapping[str, str] = NOTHING,
    properties: Mapping[str, str] = NOTHING,
    broker_properties: Mapping[int, Mapping[str, str]] | None = None,
    scram_users: Sequence[str] = (),
    jvm_options: Sequence[str] = (),
    log_directories: int = 1,
    timeout_s: float = 120,
    progress: StartObserver | None = None,
) -> Iterator[Cluster]:
    """Start a real KRaft cluster on loopback; it ends with the block, or with this process.

    Brokers are 1..n in rack0..; `shape` gives ids and racks of one's own instead. Controllers are
    3000.., nodes of their own; if there are several, every node has a process of its own.

    Errors: SandboxError with the reason and the way out.
    """
    if racks is None:
        racks = min(3, brokers)
    # Several controllers are there to be killed one by one, so each has its own process.
    request = ClusterRequest(
        brokers=tuple(shape) if shape is not None else spread_brokers(brokers, racks),
        kafka_version=find_release(kafka_version),
        isolate=isolate or controllers > 1,
        controllers=controllers,
        image=image,
        listeners=listeners,
        properties=properties,
        broker_properties=broker_properties or {},
        scram_users=scram_users,
        jvm_options=jvm_options,
        log_directories=log_directories,
        timeout_s=timeout_s,
    )
    with run_cluster(EngineName(engine), request, progress or Silence()) as cluster:
        yield cluster


@contextmanager
def run_cluster(
    engine: EngineName, request: ClusterRequest, progress: StartObserver
) -> Iterator[Cluster]:
    """Start the requested cluster and keep it for the length of the block."""
    with open_run() as directory:
        cluster: EmbeddedCluster | ContainerCluster
        if engine is EngineName.CONTAINER:
            from reconciler.sandbox.container import ContainerCluster

            cluster = ContainerCluster(request, directory)
        else:
            from reconciler.sandbox.archive import use_archive
            from reconciler.sandbox.embedded import EmbeddedCluster
            from reconciler.sandbox.launch import prepare_launch

            launch = prepare_launch(request, progress)
            launch = use_archive(launch, request, directory, progress)
            # The request's own options last: the archive is not only for this run.
            cluster = EmbeddedCluster(request, launch.adding(*request.jvm_options), directory)
        shape = describe_shape(request.brokers, request.controllers)
        progress.enter(f"starting Kafka {request.kafka_version}: {shape}")
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.close()
