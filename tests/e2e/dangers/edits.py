"""Edits that ask for what Kafka cannot do, or should not"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dangers.stage import APPLY, SAVED, clusters

if TYPE_CHECKING:
    from dangers.stage import Stage


def fewer_partitions(stage: Stage) -> None:
    """Fewer partitions"""
    stage.have("orders")
    stage.wish("orders", partitions=4)
    stage.plan_and_apply()


def replication_up(stage: Stage) -> None:
    """Replication up"""
    stage.have("orders")
    stage.wish("orders", replication_factor=3)
    stage.plan_and_apply()


def replication_down(stage: Stage) -> None:
    """Replication down"""
    stage.have("orders")
    stage.wish("orders", replication_factor=1)
    stage.plan_and_apply()


def replication_of_all(stage: Stage) -> None:
    """Replication up by one default, for every topic"""
    stage.have("clicks")
    stage.have("orders")
    stage.write("clusters.yaml", clusters(defaults="partitions: 6, replication_factor: 3"))
    stage.plan_and_apply()


def replication_above_brokers(stage: Stage) -> None:
    """More replicas than there are brokers"""
    stage.wish("orders", replication_factor=4)
    stage.plan_and_apply()


def misspelt_key(stage: Stage) -> None:
    """A key misspelt"""
    stage.wish("orders", partitons=12)
    stage.plan_and_apply()


def misspelt_config(stage: Stage) -> None:
    """A config misspelt"""
    stage.wish("orders", config={"retention.msec": "7d"})
    stage.plan_and_apply()


def bad_value(stage: Stage) -> None:
    """An invalid value"""
    stage.wish("orders", config={"cleanup.policy": "compacted", "retention.ms": "1.5d"})
    stage.plan_and_apply()


def octal_count(stage: Stage) -> None:
    """A count that two readers would read differently"""
    stage.write("orders.yaml", "topic: orders\npartitions: 012\n")
    stage.plan_and_apply()


def file_deleted(stage: Stage) -> None:
    """A file deleted"""
    stage.have("orders")
    stage.have("clicks")
    stage.take_out("clicks")
    stage.plan_and_apply()


def renamed(stage: Stage) -> None:
    """A topic renamed in its file"""
    stage.have("orders")
    stage.take_out("orders")
    stage.wish("orders.v2")
    stage.plan_and_apply()


def topic_twice(stage: Stage) -> None:
    """The same topic in two files"""
    stage.have("orders")
    stage.write("copy.yaml", "topic: orders\npartitions: 12\n")
    stage.plan_and_apply()


def ignored_topic(stage: Stage) -> None:
    """A topic that an ignore pattern matches"""
    stage.write("clusters.yaml", clusters("{ignore: ['connect-*']}"))
    stage.wish("connect-offsets")
    stage.plan_and_apply()


def colliding_name(stage: Stage) -> None:
    """A name that equals a live one, but for '.' and '_'"""
    stage.hand.create("web_clicks", [[1, 2]])
    stage.wish("web.clicks")
    stage.plan_and_apply()


def swapped_brokers(stage: Stage) -> None:
    """Broker ids swapped in a manual assignment"""
    stage.have("orders", partitions=2, assignment=[[1, 2], [2, 3]])
    stage.wish("orders", partitions=2, assignment=[[2, 1], [2, 3]])
    stage.plan_and_apply()


def unknown_broker(stage: Stage) -> None:
    """A broker that the cluster does not have"""
    stage.wish("orders", partitions=2, assignment=[[1, 2], [2, 9]])
    stage.plan_and_apply()


def min_insync_above_replication(stage: Stage) -> None:
    """min.insync.replicas above the replication factor"""
    stage.have("orders")
    stage.wish("orders", config={"min.insync.replicas": 3})
    stage.plan_and_apply()


def against_policy(stage: Stage) -> None:
    """More partitions than the team's policy allows"""
    stage.write("clusters.yaml", clusters("{policy: {partitions: {max: 48}}}"))
    stage.wish("orders", partitions=60)
    stage.plan_and_apply()


def too_much_at_once(stage: Stage) -> None:
    """A change where max_changed freezes the cluster, and --skip-refused"""
    stage.have("orders")
    stage.write("clusters.yaml", clusters("{guards: {max_changed: 0%}}"))
    stage.wish("orders", partitions=9)
    stage.plan()
    stage.apply(*APPLY, "--skip-refused")


def rest_of_a_refused_plan(stage: Stage) -> None:
    """A refused edit beside a good one, with --skip-refused"""
    stage.have("orders")
    stage.wish("orders", partitions=4)
    stage.wish("refunds")
    stage.plan()
    stage.apply(*APPLY, "--skip-refused")


def idle_glob(stage: Stage) -> None:
    """A --topic that no topic matches"""
    stage.have("orders")
    stage.wish("orders", partitions=4)
    stage.plan("--topic", "order.*")
    stage.apply(*APPLY, "--topic", "order.*")


def part_of_a_saved_plan(stage: Stage) -> None:
    """A saved plan, with --topic for a part of it"""
    stage.wish("orders")
    stage.wish("refunds")
    stage.save()
    stage.apply(*SAVED, "--topic", "orders")


DANGERS = (
    fewer_partitions,
    replication_up,
    replication_down,
    replication_of_all,
    replication_above_brokers,
    misspelt_key,
    misspelt_config,
    bad_value,
    octal_count,
    file_deleted,
    renamed,
    topic_twice,
    ignored_topic,
    colliding_name,
    swapped_brokers,
    unknown_broker,
    min_insync_above_replication,
    against_policy,
    too_much_at_once,
    rest_of_a_refused_plan,
    idle_glob,
    part_of_a_saved_plan,
)
