"""Guards and policies on a real cluster: what `plan` refuses, `apply` does not do."""

from __future__ import annotations

from pathlib import Path

import pytest
from workbench import Workbench

from reconciler.cli.app import run
from reconciler.sandbox.cluster import Cluster

CLUSTERS = """\
version: 1
defaults: {{partitions: 2, replication_factor: 1}}
policy:
  rules:
    slowly:
      on: change
      when: "'expand' in change.actions"
      check: change.after.partitions <= 2 * change.before.partitions
      message: Double a topic at most.
    told:
      on: change
      severity: warning
      check: "!('create' in change.actions)"
      message: New topics are announced in the channel.
clusters:
  lab: {{{more}}}
"""


class Desk:
    """An estate for one test's topics, and the command line beside it."""

    def __init__(
        self, cluster: Cluster, prefix: str, capsys: pytest.CaptureFixture[str], root: Path
    ) -> None:
        self.cluster, self.prefix, self.capsys = cluster, prefix, capsys
        self.estate = root / "topics"
        self.estate.mkdir()
        self.servers = ("--bootstrap-servers", cluster.bootstrap_servers)
        self.allow("")

    def allow(self, more: str) -> None:
        """Write clusters.yaml with `more` said of the cluster."""
        (self.estate / "clusters.yaml").write_text(CLUSTERS.format(more=more))

    def wish(self, **topics: str) -> None:
        documents = [f"topic: {self.prefix}{name}\n{rest}\n" for name, rest in topics.items()]
        (self.estate / "topics.yaml").write_text("---\n".join(documents))

    def run(self, *arguments: str) -> tuple[int, str]:
        glob = ("--topic", f"{self.prefix}*")
        code = run([*arguments, "--cluster", "lab", *glob, *self.servers])
        said = self.capsys.readouterr()
        return code, said.out + said.err

    def plan(self) -> tuple[int, str]:
        return self.run("plan")

    def apply(self, *more: str) -> tuple[int, str]:
        return self.run("apply", "--auto-approve", *more)

    def partitions(self) -> dict[str, int]:
        listed = Workbench(self.cluster).reader.read_cluster(config_of=()).topics
        return {
            name.removeprefix(self.prefix): len(topic.assignment)
            for name, topic in listed.items()
            if name.startswith(self.prefix)
        }


@pytest.fixture
def desk(
    cluster3: Cluster,
    topic_prefix: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return Desk(cluster3, topic_prefix, capsys, tmp_path)


def test_a_rule_on_changes_refuses_one_topic_and_the_others_go_on(desk: Desk) -> None:
    desk.wish(grown="", steady="")
    code, said = desk.apply()
    assert code == 0, said
    assert "this breaks the rule told: New topics are announced in the channel" in said
    desk.wish(grown="partitions: 5", steady="partitions: 4")
    code, said = desk.plan()
    assert code == 1
    assert "This breaks the rule slowly: Double a topic at most." in said
    code, said = desk.apply()
    assert (code, desk.partitions()) == (1, {"grown": 2, "steady": 2})
    assert "[policy-rule]" in said
    code, said = desk.apply("--skip-refused")
    assert (code, desk.partitions()) == (1, {"grown": 2, "steady": 4})


def test_a_guard_refuses_the_whole_plan_until_it_is_split(desk: Desk) -> None:
    names = [f"t{number}" for number in range(12)]
    desk.wish(**dict.fromkeys(names, ""))
    assert desk.apply()[0] == 0
    desk.allow("guards: {max_changed: 0%}")
    desk.wish(**dict.fromkeys(names, "partitions: 4"), new="")
    code, said = desk.plan()
    assert code == 1
    assert "the whole plan" in said
    for more in ((), ("--skip-refused",)):
        code, said = desk.apply(*more)
        assert code == 1
        assert "[guard-max-changed]" in said
    assert desk.partitions() == dict.fromkeys(names, 2)
    desk.allow("guards: {max_changed: 100%}")
    assert desk.apply()[0] == 0
    assert desk.partitions() == {**dict.fromkeys(names, 4), "new": 2}


def test_what_a_service_keeps_to_itself_stays_as_it_is(desk: Desk) -> None:
    desk.wish(kept="config: {segment.ms: 1h, retention.ms: 1h}")
    assert desk.apply()[0] == 0
    desk.allow("known_configs: [retention.ms]")
    desk.wish(kept="config: {retention.ms: 2h}")
    code, said = desk.apply()
    assert code == 0, said
    assert f"segment.ms is set on {desk.prefix}kept; it cannot be set there" in said
    bench = Workbench(desk.cluster)
    name = f"{desk.prefix}kept"
    assert bench.topics(name)[name].config == {"segment.ms": "3600000", "retention.ms": "7200000"}
