"""Fixtures of the contract tests: one broker of each release line, to be asked for verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from judge import Judge
from security import start_secured

from reconciler.sandbox.cluster import start_cluster
from reconciler.sandbox.jars import known_releases
from reconciler.spec.configs import choose_catalogue

if TYPE_CHECKING:
    from security import Secured

DEFAULT_RELEASE = known_releases()[-1]
CONTROLLER_ID = 3000


def releases() -> list[object]:
    """Return the default release, and the others behind the slow marker."""
    return [
        pytest.param(release, marks=() if release == DEFAULT_RELEASE else pytest.mark.slow)
        for release in known_releases()
    ]


@pytest.fixture(scope="session", params=releases())
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    """Start one broker; only its controller, which judges configs, has tiered storage on."""
    tiered = {CONTROLLER_ID: {"remote.log.storage.system.enable": "true"}}
    release = request.param
    with start_cluster(brokers=1, kafka_version=release, broker_properties=tiered) as cluster:
        servers = cluster.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        yield Judge(release, servers, choose_catalogue(release), admin)


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Start one broker with TLS, SASL, tokens and an authorizer."""
    with start_secured(tmp_path_factory.mktemp("security")) as secured:
        yield secured
