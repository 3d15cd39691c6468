"""The story of one change: planned, overtaken, refused, planned again, applied, drifted from.

Every command is the real one, on a real cluster, in a real repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from by_hand import ByHand
from command import run_here
from repository import start_repository

from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from command import Ran

CLUSTERS = """\
version: 1
defaults: {{replication_factor: 3, config: {{min.insync.replicas: 2}}}}
clusters:
  prod-eu: {{cluster_id: {cluster_id}}}
"""
ORDERS = "topic: story.orders\nowner: orders\npartitions: 6\n"
CLICKS = "topic: story.clicks\nowner: web\npartitions: 3\nconfig: {retention.ms: 7d}\n"

MORE_ORDERS = ORDERS.replace("partitions: 6", "partitions: 9")
FEWER_CLICKS = CLICKS.replace("7d", "3d") + "acknowledge: [data-loss]\n"
REFUNDS = "topic: story.refunds\nowner: payments\npartitions: 3\n"


class Team:
    """A repository, the jobs of its workflows, and a colleague with the brokers' own tools."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.repository = start_repository(directory)
        self._servers = cluster.bootstrap_servers
        self.colleague = ByHand(cluster)

    def reconciler(self, *arguments: str) -> Ran:
        return run_here(self.repository.root, self._servers, *arguments)

    def comment_on_the_branch(self) -> str:
        """Plan for review, keeping the plan. Returns the comment."""
        asked = ("--out", "plan.json", "--format", "markdown")
        ran = self.reconciler("plan", "--cluster", "prod-eu", *asked)
        assert ran.code == 0, ran
        return ran.out

    def apply_what_was_approved(self) -> Ran:
        return self.reconciler("apply", "plan.json", "--auto-approve")

    def look_for_drift(self) -> Ran:
        return self.reconciler("plan", "--cluster", "prod-eu", "--detailed-exitcode")

    def partitions(self, topic: str) -> int:
        found = self.colleague.look(topic)
        return len(found.assignment) if found else 0

    def retention_ms(self, topic: str) -> str | None:
        found = self.colleague.look(topic)
        return found.config.get("retention.ms") if found else None


@pytest.fixture
def team(cluster3: Cluster, tmp_path: Path) -> Team:
    """Return a team whose main branch and cluster agree."""
    team = Team(cluster3, tmp_path)
    clusters = CLUSTERS.format(cluster_id=cluster3.cluster_id)
    team.repository.commit(clusters=clusters, orders=ORDERS, clicks=CLICKS)
    assert team.reconciler("apply", "--cluster", "prod-eu", "--auto-approve").code == 0
    assert team.look_for_drift().code == 0
    return team


def test_the_story_of_one_change(team: Team) -> None:
    repository = team.repository

    # A branch changes three specs: one topic grows, one keeps less, one is new.
    repository.git("switch", "--quiet", "--create", "make-room")
    repository.commit(orders=MORE_ORDERS, clicks=FEWER_CLICKS, refunds=REFUNDS)
    assert repository.git("diff", "--name-only", "main").split() == [
        "topics/clicks.yaml",
        "topics/orders.yaml",
        "topics/refunds.yaml",
    ]

    # The pull request gets a comment that says all of it, risks first. Nothing is touched.
    comment = team.comment_on_the_branch()
    assert comment.startswith("<!-- reconciler:plan cluster=prod-eu -->\n")
    assert "`prod-eu`: 1 to create, 1 to expand, 1 to configure\n" in comment
    assert (
        "**data-loss**, acknowledged: records older than 3d (259200000) are deleted. `story"
        in comment
    )
    assert (
        "**ordering, not acknowledged**: keys move to other partitions. `story.orders`" in comment
    )
    assert "`story.orders` | `orders` | 6 → 9 partitions |" in comment
    assert "`story.clicks` | `web` | `retention.ms` 7d → 3d |" in comment
    assert "`story.refunds` | `payments` | 3 partitions × 3 replicas, 1 config |" in comment
    assert "reconciler apply plan.json" in comment
    approved = fingerprint_in(comment)
    assert (team.partitions("story.orders"), team.partitions("story.refunds")) == (6, 0)

    # It is approved and merged. Meanwhile somebody turns a retention on the cluster itself.
    team.colleague.configure("story.clicks", retention_ms="3600000")
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "--message", "Merge make-room", "make-room")

    # Apply keeps its word: it names the topic and the field, and does nothing of the plan.
    refused = team.apply_what_was_approved()
    assert refused.code == 1
    assert refused.err == (
        "error: topics/clicks.yaml:1:8: story.clicks: retention.ms: 604800000 → "
        "3600000 since the plan was made (planned: 259200000); plan again [plan-stale]\n"
    )
    assert (team.partitions("story.orders"), team.partitions("story.refunds")) == (6, 0)
    assert team.retention_ms("story.clicks") == "3600000"

    # Planned again, the comment of that cluster tells of the hour, and has another fingerprint.
    comment = team.comment_on_the_branch()
    assert comment.startswith("<!-- reconciler:plan cluster=prod-eu -->\n")
    assert "`story.clicks` | `web` | `retention.ms` 1h → 3d |" in comment
    assert "**data-loss**" not in comment  # what accepts it is unused now
    assert "no change needs acknowledge: &#91;data-loss&#93;" in comment
    assert fingerprint_in(comment) != approved

    # Applied, and nothing is left to do; applied twice, it is done already.
    applied = team.apply_what_was_approved()
    assert (applied.code, applied.err) == (0, "")
    assert applied.out.endswith("\nApplied: 3 done\n")
    assert (team.partitions("story.orders"), team.partitions("story.refunds")) == (9, 3)
    assert team.retention_ms("story.clicks") == "259200000"
    clean = team.look_for_drift()
    assert (clean.code, clean.err) == (0, "")
    assert "\nNo changes. 3 topics as specified" in clean.out
    assert team.apply_what_was_approved().out.endswith("\nApplied: 3 already done\n")

    # What is changed by hand from now on is drift: the nightly job says what, and exits 2.
    team.colleague.configure("story.orders", min_insync_replicas="1")
    drifted = team.look_for_drift()
    assert drifted.code == 2
    assert re.search(
        r"^~ configure story\.orders .* topics/orders\.yaml:1 · \S+$", drifted.out, re.M
    )
    assert re.search(r"^ +min\.insync\.replicas +1 → 2$", drifted.out, re.M)
    assert "\n1 to configure, 2 unchanged" in drifted.out


def fingerprint_in(comment: str) -> str:
    found = re.search(r"Fingerprint `([0-9a-f]{64})`", comment)
    assert found, comment[-300:]
    return found[1]
