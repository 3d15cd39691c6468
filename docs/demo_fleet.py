"""The fleet's demonstration: three real clusters collected, planned, audited, shown and fixed.

`make demo-fleet` runs it. It works in a directory of its own, on clusters of its own, and leaves
neither behind, whether it ends, is interrupted or is killed; only the page is kept.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml
from confluent_kafka.admin import AdminClient, NewTopic
from stage import ROOT, Stage, open_stage

from reconciler.model.cluster import Broker
from reconciler.sandbox.cluster import Cluster

PAGE = ROOT / "build" / "demo-fleet.html"
LAKE, PLANS = "lake", "plans"

SHAPES: Mapping[str, tuple[Broker, ...]] = {
    "prod-eu": tuple(Broker(n, f"eu-{'abc'[n % 3]}") for n in range(1, 7)),
    "prod-us": tuple(Broker(n, f"us-{'ab'[n % 2]}") for n in (11, 12, 13, 14)),
    "staging": tuple(Broker(n) for n in (1, 2, 3)),
}
HISTORY = {
    "prod-eu": [  # its spec has grown to 9 partitions since
        NewTopic("payments.captured", 6, 3, config={"min.insync.replicas": "2"}),
        NewTopic("legacy.clickstream", 4, 3),  # unmanaged
    ],
    "prod-us": [  # somebody has turned its configs by hand
        NewTopic("orders.events", 12, 3, config={"retention.ms": "86400000", "flush.ms": "1000"}),
    ],
    "staging": [  # its spec asks for 6 partitions, and Kafka takes none away
        NewTopic("shop.prices", 8, 3, config={"cleanup.policy": "compact"}),
    ],
}


def name_clusters(estate: Path, clusters: Mapping[str, Cluster]) -> None:
    """Put the clusters in the place of the example's."""
    file = estate / "clusters.yaml"
    document = yaml.safe_load(file.read_text())
    document["clusters"] = {
        name: {
            "cluster_id": cluster.cluster_id,
            "client": {"bootstrap.servers": cluster.bootstrap_servers},
        }
        for name, cluster in clusters.items()
    }
    file.write_text(yaml.safe_dump(document, sort_keys=False))


def amend_wish(estate: Path) -> None:
    """Let shop.prices, the last topic of its file, have on staging what it has there."""
    with (estate / "shop.yaml").open("a") as file:
        file.write("overrides:\n  staging:\n    partitions: 8\n")


def keep_page(page: Path) -> None:
    """Keep a page that was written, where people find it."""
    PAGE.parent.mkdir(exist_ok=True)
    shutil.copyfile(page, PAGE)
    print(f"it is kept as {PAGE.relative_to(ROOT)}", flush=True)


def play(stage: Stage, clusters: Mapping[str, Cluster]) -> None:
    """Play the demonstration from the first act to the last."""
    stage.say("They have a history: a topic too small, one turned by hand, one unmanaged, …")
    for name, topics in HISTORY.items():
        _create(clusters[name], topics)
    name_clusters(stage.directory / "topics", clusters)

    stage.say("A night: collect, plan, audit, history and page; it exits 1 for a refusal")
    night = ("--lake", LAKE, "--out", PLANS, "--page", PAGE.name)
    stage.run("fleet", "run", "topics", *night, expect=1)

    stage.say("The plan of one cluster, read and applied as any other; then that of another")
    stage.run("show", f"{PLANS}/prod-eu.json")
    stage.run("apply", f"{PLANS}/prod-eu.json", "--auto-approve")
    stage.run("apply", f"{PLANS}/prod-us.json", "--auto-approve")
    stage.say("The wish that nobody can grant is amended in its file, and planned anew")
    amend_wish(stage.directory / "topics")
    again = f"{PLANS}/staging.json"
    stage.run("plan", "topics", "--cluster", "staging", "--out", again)
    stage.run("apply", again, "--auto-approve")
    stage.say("Nothing is left to do on any of them")
    for name in clusters:  # it would exit 2 for a change
        stage.run("plan", "topics", "--cluster", name, "--detailed-exitcode")
    stage.say("The page of the night, from before the plans were applied, for a browser")
    keep_page(stage.directory / PAGE.name)


def _create(cluster: Cluster, topics: list[NewTopic]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for created in admin.create_topics(topics).values():
        created.result()


def main() -> None:
    """Start the clusters, and play."""
    with open_stage() as stage:
        stage.say("Three real Kafka clusters of unlike brokers and racks, on this machine only")
        clusters = {}
        for name, shape in SHAPES.items():
            clusters[name] = stage.start(shape)
            racks = ", ".join(sorted({broker.rack or "no rack" for broker in shape}))
            print(f"  {name:<8} brokers {', '.join(str(b.id) for b in shape)}; {racks}", flush=True)
        play(stage, clusters)


if __name__ == "__main__":
    main()
