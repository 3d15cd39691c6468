"""A repository as a runner clones it, with an estate for one cluster, and that cluster."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from reconciler.sandbox.cluster import Cluster

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 900
"""A run takes one minute, and several where the machine does other work as well."""
ORIGIN = "https://github.com/shop/topics.git"
SECRETS = {"KAFKA_USER": "planner-of-shop", "KAFKA_PASSWORD": "pass-word-of-shop"}

_LEFT_BEHIND = shutil.ignore_patterns("__pycache__")


def alter(admin: AdminClient, topic: str, key: str, value: str | None) -> None:
    """Change a config of a topic by hand, or take it away."""
    kind = AlterConfigOpType.SET if value is not None else AlterConfigOpType.DELETE
    entry = ConfigEntry(key, value or "", incremental_operation=kind)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(timeout=15)


class Clone:
    """A repository with specs in topics/, and what its code host calls main."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def begin(self) -> None:
        """Make what is there the first commit of main."""
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("remote", "add", "origin", ORIGIN)
        self.commit()
        self.merge()

    def merge(self) -> None:
        """Let what is committed be on main at the code host."""
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")

    def git(self, *arguments: str) -> str:
        names = ("-c", "user.name=Alice", "-c", "user.email=alice@shop.example")
        done = subprocess.run(
            ("git", *names, *arguments),
            cwd=self.directory,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        (self.directory / "topics" / name).write_text(text)

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "Change topics")
        return self.git("rev-parse", "HEAD")


def copy_source(directory: Path) -> Clone:
    """Make a repository of this project, as it is, for those who use it from theirs."""
    for part in (".ci", ".github", "reconciler"):
        shutil.copytree(ROOT / part, directory / part, ignore=_LEFT_BEHIND)
    for part in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / part, directory)
    source = Clone(directory)
    source.begin()
    return source


def drop_queues(directory: Path) -> None:
    """Drop a key that act 0.2.89 refuses. It runs one job at a time, so nothing waits."""
    for workflow in (directory / ".github" / "workflows").glob("*.yml"):
        kept = re.sub(r"^ +queue: max.*\n", "", workflow.read_text(), flags=re.MULTILINE)
        workflow.write_text(kept)


class Repository(Clone):
    """This project with other specs: those of one cluster, `lab`."""

    def __init__(self, directory: Path, cluster: Cluster, prefix: str) -> None:
        super().__init__(directory)
        self.prefix = prefix
        self.servers = cluster.bootstrap_servers
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        for part in (".github", ".ci", "reconciler"):
            shutil.copytree(ROOT / part, directory / part, ignore=_LEFT_BEHIND)
        for part in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
            shutil.copy(ROOT / part, directory)
        drop_queues(directory)
        (directory / "topics").mkdir()
        self.connect(cluster.bootstrap_servers)
        self.begin()

    def connect(self, servers: str, more: str = "") -> None:
        """Say where the cluster is; its client needs a secret of the environment."""
        client = f"{{bootstrap.servers: '{servers}', sasl.username: '${{env:KAFKA_USER}}'}}"
        self.write("clusters.yaml", f"version: 1\nclusters: {{lab: {{client: {client}{more}}}}}\n")

    def connect_stages(self, **servers: str) -> None:
        """Name a cluster for each stage; all are this one, except those with other `servers`."""
        stages = ("dev", "staging", "prod")
        user = "sasl.username: '${env:KAFKA_USER}'"
        clusters = "".join(
            f"  {name}: {{client: {{bootstrap.servers: '{address}', {user}}}}}\n"
            for name, address in (dict.fromkeys(stages, self.servers) | servers).items()
        )
        listed = ", ".join(f"[{name}]" for name in stages)
        self.write("clusters.yaml", f"version: 1\nclusters:\n{clusters}stages: [{listed}]\n")

    def allow_moves(self) -> None:
        """Let replicas of the cluster move."""
        self.connect(self.servers, ", moves: {allow: [replication, assignment], rate: 30MiB}")

    def wish(self, name: str, partitions: int, **more: str) -> None:
        """Write the spec of a topic, its name and partitions on the first two lines."""
        lines = {"topic": self.prefix + name, "partitions": str(partitions)}
        lines |= {"replication_factor": "2", **more}
        self.write(f"{name}.yaml", "".join(f"{key}: {value}\n" for key, value in lines.items()))

    def create(self, name: str, partitions: int) -> None:
        """Create a topic by hand, without configs."""
        (future,) = self._admin.create_topics(
            [NewTopic(self.prefix + name, partitions, 2)]
        ).values()
        future.result(timeout=15)

    def partitions(self) -> dict[str, int]:
        """Return what is on the cluster: partitions of each topic of this test."""
        topics = self._admin.list_topics(timeout=15).topics
        mine = {name: topic for name, topic in topics.items() if name.startswith(self.prefix)}
        return {name.removeprefix(self.prefix): len(t.partitions) for name, t in mine.items()}

    def replicas(self, name: str) -> list[int]:
        """Return how many replicas each partition of a topic has on the cluster."""
        topic = self._admin.list_topics(self.prefix + name, timeout=15).topics[self.prefix + name]
        return [len(topic.partitions[number].replicas) for number in sorted(topic.partitions)]

    def config(self, name: str, key: str) -> str | None:
        """Return a config of a topic on the cluster."""
        resource = ConfigResource(ResourceType.TOPIC, self.prefix + name)
        (future,) = self._admin.describe_configs([resource]).values()
        found: str | None = future.result(timeout=15)[key].value
        return found

    def alter(self, name: str, key: str, value: str | None) -> None:
        """Change a config of a topic by hand, or take it away."""
        alter(self._admin, self.prefix + name, key, value)
