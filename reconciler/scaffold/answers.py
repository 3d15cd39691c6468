"""The answers that a repository is written from: clusters, stages, code host, and what CI installs.

What a repository already has answers as well: `read_pin` finds what its jobs install.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

WHEEL_LIST = ".ci/wheel.txt"
"""The one line that .ci/install.sh installs instead of its own tree."""

GITLAB_INCLUDES = ".gitlab/reconciler.yml"
"""The includes of the template for GitLab, one per cluster."""


SECRETS = ("KAFKA_USER", "KAFKA_PASSWORD")
"""What the workflows pass to a client: the account of a cluster, for SASL."""

REQUESTS = "reconciler-requests"
"""The environment whose jobs open requests for clusters that change by themselves."""
APP_SECRETS = ("RECONCILER_APP_ID", "RECONCILER_APP_KEY")
"""The app on GitHub that opens them."""
REQUEST_TOKEN = "RECONCILER_REQUEST_TOKEN"  # noqa: S105 - the name of a variable
"""The token on GitLab that opens them."""


class Host(StrEnum):
    """Where requests are reviewed; none for a repository that no workflow runs in."""

    GITHUB = "github"
    GITLAB = "gitlab"
    NONE = "none"


class Security(StrEnum):
    """How a client of a cluster connects. The accounts of the workflows are for SASL."""

    SASL_SSL = "sasl_ssl"
    SASL_PLAINTEXT = "sasl_plaintext"
    PLAINTEXT = "plaintext"


@dataclass(frozen=True, slots=True)
class CommitPin:
    """What CI installs: the tree of a commit.

    `source` is OWNER/NAME on GitHub, and an https address that ends in .git on GitLab.
    """

    source: str
    commit: str

    def __str__(self) -> str:
        return f"commit {self.commit[:12]} of {self.source}"


@dataclass(frozen=True, slots=True)
class WheelPin:
    """What CI installs: a wheel, by its https address or its path in the repository."""

    place: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.place.rpartition('/')[2]} (sha256 {self.sha256[:12]}…)"


@dataclass(frozen=True, slots=True)
class ImagePin:
    """What CI runs: an image that has reconciler. Jobs of GitLab only."""

    image: str

    def __str__(self) -> str:
        return f"image {self.image}"


Pin = CommitPin | WheelPin | ImagePin


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """A cluster of the repository. What could not be read of it is None.

    `written` is the client of a clusters.yaml that exists; a new one gets `client`.
    """

    name: str
    servers: str
    security: Security = Security.SASL_SSL
    mechanism: str = "SCRAM-SHA-512"
    cluster_id: str | None = None
    brokers: int | None = None
    ignore: tuple[str, ...] = ()
    written: Mapping[str, str] | None = None

    @property
    def client(self) -> Mapping[str, str]:
        """The client properties, with the references that the workflows resolve."""
        if self.written is not None:
            return self.written
        client = {"bootstrap.servers": self.servers}
        if self.security is Security.PLAINTEXT:
            return client
        client["security.protocol"] = self.security.name
        client["sasl.mechanism"] = self.mechanism
        client["sasl.username"] = "${env:KAFKA_USER}"
        client["sasl.password"] = "${env:KAFKA_PASSWORD}"
        return client

    @property
    def secrets(self) -> tuple[str, ...]:
        """Those of SECRETS that the client refers to: none without SASL."""
        texts = self.client.values()
        return tuple(name for name in SECRETS if any(f"${{env:{name}}}" in text for text in texts))

    @property
    def has_accounts(self) -> bool:
        """Return whether brokers know who connects, so that there are rights to grant."""
        return self.client.get("security.protocol", "plaintext").lower() != "plaintext"


@dataclass(frozen=True, slots=True)
class Answers:
    """What a repository is written from.

    `stages` names every cluster, in the order in which a merge reaches them. `inputs` are the lines
    that people wrote into the include of a cluster on GitLab. `rebalanced` are the clusters
    that allow a rebalance. `sandbox_brokers` is the size of the sandbox that runs, for a repository
    without clusters. `platform` owns clusters.yaml and the workflows.
    """

    clusters: tuple[ClusterAnswer, ...] = ()
    stages: tuple[tuple[str, ...], ...] = ()
    host: Host = Host.NONE
    pin: Pin | None = None
    sandbox_brokers: int | None = None
    platform: tuple[str, ...] = ()
    example: bool = True
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    rebalanced: tuple[str, ...] = ()
    schemas: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def names(self) -> tuple[str, ...]:
        """The clusters in the order of their stages."""
        return tuple(name for stage in self.stages for name in stage)

    @property
    def environments(self) -> Mapping[str, tuple[str, ...]]:
        """The environments of the code host, each with its secrets.

        The account that reads is in NAME-plan, and the one that writes in NAME.
        """
        clusters = {cluster.name: cluster for cluster in self.clusters}
        return {
            environment: clusters[name].secrets
            for name in self.names
            for environment in (f"{name}-plan", name)
        }


_USED = re.compile(r"uses: (\S+)/\.github/actions/install@([0-9a-f]{40})\b")
_WHEEL = re.compile(r"kafka-reconciler @ (\S+) --hash=sha256:([0-9a-f]{64})")
_TREE = "file://${RECONCILER_TREE}/"
_INPUT = r"^ +{}: (\S+)$"
_LINE = re.compile(r"^ {6}(\w+): .*$", re.MULTILINE)
WRITTEN = ("cluster", "apply_stage", "source", "commit", "image")
"""The inputs of an include that `init` writes. Others belong to people."""


def read_pin(files: Mapping[str, str]) -> Pin | None:
    """Return what the jobs of a repository install, None if they do not say.

    In: its files by path, those of `init`.
    """
    if found := _WHEEL.search(files.get(WHEEL_LIST, "")):
        return WheelPin(found[1].removeprefix(_TREE), found[2])
    if found := _USED.search(files.get(".github/workflows/plan.yml", "")):
        return CommitPin(found[1], found[2])
    includes = files.get(GITLAB_INCLUDES, "")
    source, commit, image = (
        re.search(_INPUT.format(name), includes, re.MULTILINE)
        for name in ("source", "commit", "image")
    )
    if source and commit:
        return CommitPin(source[1], commit[1])
    return ImagePin(image[1]) if image else None


def read_inputs(includes: str) -> Mapping[str, tuple[str, ...]]:
    """Return the lines that people added to the inputs of each cluster, by its name."""
    found: dict[str, tuple[str, ...]] = {}
    for block in includes.split("    inputs:\n")[1:]:
        if cluster := re.search(_INPUT.format("cluster"), block, re.MULTILINE):
            lines = (line[0] for line in _LINE.finditer(block) if line[1] not in WRITTEN)
            found[cluster[1]] = tuple(lines)
    return found


def spell_wheel(pin: WheelPin) -> str:
    """Return the line of `WHEEL_LIST`, which `read_pin` reads."""
    remote = "://" in pin.place
    place = pin.place if remote else f"{_TREE}{pin.place}"
    return f"kafka-reconciler @ {place} --hash=sha256:{pin.sha256}\n"
