"""A cluster that changes by itself: brokers join, a request opens, is approved, merged and done.

And brokers that leave again before anybody approves: then it closes. It is balanced by bytes, and
topics grow between the approval and the merge. The same on GitHub and on GitLab, each with a
cluster of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from act import Act
from code_host import TOKEN, CodeHost
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from gitlab_local import GitLabLocal
from lab import wait_for
from runner_clone import SECRETS, Repository

from reconciler.codehost.seals import read_seal
from reconciler.planfile.approval import unpack_moved
from reconciler.sandbox.cluster import Cluster, start_cluster

if TYPE_CHECKING:
    from code_hosts import GitHubHost, GitLabHost
    from written import Written

BRANCH = "reconciler/rebalance-lab"
ROWS = [[1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2]]
"""Nothing is on broker 4."""
RECORD = bytes(10_000)


class Ran(Protocol):
    @property
    def code(self) -> int: ...

    @property
    def text(self) -> str: ...


class Pipelines(Protocol):
    """What events start on a code host."""

    def rebalance(self) -> Ran: ...

    def move(self) -> Ran: ...

    def publish(self) -> None: ...


class World:
    """A repository, its code host, its pipelines, and its cluster, whose fourth broker is away."""

    def __init__(
        self, cluster: Cluster, repository: Repository, host: CodeHost, pipelines: Pipelines,
        plan: Callable[[int], Ran],
    ) -> None:  # fmt: skip
        self.cluster, self.repository, self.host = cluster, repository, host
        self.pipelines, self.plan = pipelines, plan
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def night(self) -> Ran:
        ran = self.pipelines.rebalance()
        assert ran.code == 0, ran.text
        return ran

    def join(self) -> None:
        self.cluster.start_broker(4)
        wait_for(lambda: set(self.admin.list_topics(timeout=15).brokers) == {1, 2, 3, 4}, 60)

    def leave(self) -> None:
        self.cluster.stop_broker(4)
        wait_for(lambda: set(self.admin.list_topics(timeout=15).brokers) == {1, 2, 3}, 60)

    def fetch(self, number: int) -> str:
        """Have the branch of a request in the repository; its host has only the one file."""
        branch, talk = self.host.branches[BRANCH], self.host.talks[number]
        self.repository.git("switch", "--quiet", "--force-create", f"request-{number}", "main")
        assert branch.base == self.repository.git("rev-parse", "HEAD")
        file = self.repository.directory / branch.path
        before = file.read_text()
        file.write_text(branch.text)
        talk.head = self.repository.commit()
        return "".join(sorted(set(branch.text.split("\n")) ^ set(before.split("\n"))))

    def merge(self, number: int) -> Ran:
        git = self.repository.git
        git("switch", "--quiet", "main")
        git("merge", "--quiet", "--no-ff", "--message", "Merge", f"request-{number}")
        self.host.talks[number].merged_as = git("rev-parse", "HEAD")
        return self.pipelines.move()

    def write(self, partitions: Iterable[int], records: int) -> None:
        """Write records to partitions of the topic, each of the same size."""
        servers = self.cluster.bootstrap_servers
        producer = Producer({"bootstrap.servers": servers, "log_level": 0, "acks": "all"})
        for _ in range(records):
            for number in partitions:
                producer.produce(f"{self.repository.prefix}orders", RECORD, partition=number)
        assert producer.flush(60) == 0

    def held(self) -> Counter[int]:
        """Return how many replicas of the topic are on each broker, as another client sees it."""
        name = f"{self.repository.prefix}orders"
        partitions = self.admin.list_topics(name, timeout=15).topics[name].partitions
        return Counter(broker for p in partitions.values() for broker in p.replicas)


@pytest.fixture
def world_of(
    tmp_path: Path, topic_prefix: str
) -> Iterator[Callable[[], tuple[Cluster, Repository]]]:
    with start_cluster(4, racks=1) as cluster:

        def begin() -> tuple[Cluster, Repository]:
            cluster.stop_broker(4)
            directory = tmp_path / "repository"
            directory.mkdir()
            repository = Repository(directory, cluster, topic_prefix)
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
            new = NewTopic(f"{topic_prefix}orders", len(ROWS), replica_assignment=ROWS)
            for future in admin.create_topics([new]).values():
                future.result(timeout=15)
            repository.write(
                "clusters.yaml",
                "version: 1\n# The clusters, and what they allow.\n"
                "clusters:\n  lab:  # four brokers\n"
                f"    client: {{bootstrap.servers: '{cluster.bootstrap_servers}', "
                "sasl.username: '${env:KAFKA_USER}'}\n"
                "    moves: {allow: [rebalance], rate: 30MiB}\n"
                "    balance: {by: [disk]}\n",
            )
            repository.wish("orders", 6)
            (directory / "CODEOWNERS").write_text("* @bob\n/topics/clusters.yaml @alice\n")
            repository.commit()
            repository.merge()
            return cluster, repository

        yield begin


def test_on_github(
    world_of: Callable[[], tuple[Cluster, Repository]],
    github: GitHubHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
    written: Written,
) -> None:
    program = find_tool("act")
    cluster, repository = world_of()
    act = Act(program, repository, github, environment)
    act.variables |= {"RECONCILER_MOVES": '["lab"]', "RECONCILER_REBALANCE": '["lab"]'}
    live_through(World(cluster, repository, github, act, act.pull))
    assert written.find((TOKEN, *SECRETS.values()), *list_words(github)) == []


def test_on_gitlab(
    world_of: Callable[[], tuple[Cluster, Repository]],
    gitlab: GitLabHost,
    environment: dict[str, str],
    find_tool: Callable[[str], str],
    written: Written,
) -> None:
    program = find_tool("gitlab-ci-local")
    cluster, repository = world_of()
    local = GitLabLocal(program, repository, gitlab, environment, moves=True, rebalance=True)
    local.publish()
    live_through(World(cluster, repository, gitlab, local, local.plan))
    assert written.find((TOKEN, *SECRETS.values()), *list_words(gitlab)) == []


def list_words(host: CodeHost) -> list[str]:
    words = [talk.body for talk in host.talks.values()]
    return words + [note["body"] for talk in host.talks.values() for note in talk.comments]


def live_through(world: World) -> None:
    """Live through some nights, from before the broker joins until its replicas are there."""
    host = world.host
    world.write(range(len(ROWS)), 100)
    said = world.night().text
    assert "every broker is inside its band" in said, said
    assert (host.branches, host.open_requests) == ({}, [])

    world.join()
    world.night()
    (first,) = host.open_requests
    assert host.talks[first].title == "Rebalance lab to brokers 4"
    assert host.talks[first].reviewers == ("alice",)
    assert "Broker 4 holds no replica of any topic." in host.talks[first].body
    changed = world.fetch(first)
    assert changed.startswith("    rebalance: {brokers: [4], until: "), changed
    planned = world.plan(first)
    assert planned.code == 0, planned.text
    (note,) = host.talks[first].comments
    assert "Kafka plan of moves for `lab`" in note["body"]
    assert "3 replicas of 3 partitions are copied" in note["body"]

    # Nobody approved it, and the broker leaves again.
    world.repository.git("switch", "--quiet", "main")
    world.leave()
    world.night()
    assert (host.branches, host.open_requests) == ({}, [])
    assert "This is not needed any more" in host.talks[first].comments[-1]["body"]

    world.join()
    world.night()
    (second,) = host.open_requests
    world.fetch(second)
    assert world.plan(second).code == 0
    host.talks[second].review("alice")
    assert world.held() == {1: 4, 2: 4, 3: 4}
    # What is to move grows, so a new plan would copy less by moving other partitions.
    seal = read_seal(host.talks[second].comments[-1]["body"])
    assert seal is not None
    copied = {n for (_, n), (old, new) in unpack_moved(seal.moved).items() if {*old} != {*new}}
    assert len(copied) == 3
    world.write(copied, 6)
    commit = host.branches[BRANCH].commit
    world.repository.git("switch", "--quiet", "main")
    world.night()
    assert host.branches[BRANCH].commit == commit
    merged = world.merge(second)
    assert merged.code == 0, merged.text
    assert "the approved rows are used: they bring the same brokers" in merged.text
    assert world.held() == {1: 3, 2: 3, 3: 3, 4: 3}
    world.pipelines.publish()
    said = world.night().text
    assert "clusters.yaml already asks for a rebalance until" in said, said
    assert (host.branches, host.open_requests) == ({}, [])
