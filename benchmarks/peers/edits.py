"""The ten edits: what is there first, what the file then says, and what else happens."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tool import Topic

WEEK_MS = 7 * 24 * 60 * 60 * 1000
RETENTION = "retention.ms"
ORDERS = Topic("orders", partitions=4, config=((RETENTION, str(WEEK_MS)),))

PAYMENTS = replace(ORDERS, name="payments")


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of the file, on a cluster of `brokers` in three racks.

    `records` are stored in every topic before the edit. `by_hand` is a config of orders that
    somebody sets on the cluster between plan and apply. `watch` names what the outcome is told by.
    """

    title: str
    start: tuple[Topic, ...]
    wanted: tuple[Topic, ...]
    watch: str
    brokers: int = 3
    records: int = 0
    by_hand: tuple[str, str] | None = None


def _with_config(key: str, value: str) -> Topic:
    config = {**dict(ORDERS.config), key: value}
    return replace(ORDERS, config=tuple(config.items()))


PAIR = tuple(Topic(f"orders-{n:02}", partitions=2) for n in range(1, 13))

EDITS = (
    Edit(
        "Create 12 partitions on 9 brokers in 3 racks",
        start=(),
        wanted=(Topic("orders", partitions=12),),
        watch="balance",
        brokers=9,
    ),
    Edit(
        "Grow 12 topics from 2 to 3 partitions on 3 brokers",
        start=PAIR,
        wanted=tuple(replace(topic, partitions=3) for topic in PAIR),
        watch="idle",
    ),
    Edit(
        "Fewer partitions: 4 to 2, with 300 records",
        start=(ORDERS,),
        wanted=(replace(ORDERS, partitions=2),),
        watch="records",
        records=300,
    ),
    Edit(
        "Replication factor 3 to 2",
        start=(ORDERS,),
        wanted=(replace(ORDERS, replication=2),),
        watch="replicas",
    ),
    Edit(
        "Replication factor 2 to 3",
        start=(replace(ORDERS, replication=2),),
        wanted=(ORDERS,),
        watch="replicas",
    ),
    Edit(
        "Misspelt config key: `retention.msec`",
        start=(ORDERS,),
        wanted=(_with_config("retention.msec", "3600000"),),
        watch="config",
    ),
    Edit(
        "Bad config value: `cleanup.policy: compacted`",
        start=(ORDERS,),
        wanted=(_with_config("cleanup.policy", "compacted"),),
        watch="config",
    ),
    Edit(
        "A topic with 300 records disappears from the file, another stays",
        start=(ORDERS, PAYMENTS),
        wanted=(PAYMENTS,),
        watch="records",
        records=300,
    ),
    Edit(
        "Stale plan: the file says 14d, after the plan somebody sets 30d",
        start=(ORDERS,),
        wanted=(_with_config(RETENTION, str(WEEK_MS * 2)),),
        watch="config",
        by_hand=(RETENTION, str(WEEK_MS * 30 // 7)),
    ),
    Edit(
        "Retention 7d to 1h, with 300 records that are 2 hours old",
        start=(ORDERS,),
        wanted=(_with_config(RETENTION, "3600000"),),
        watch="records",
        records=300,
    ),
)
