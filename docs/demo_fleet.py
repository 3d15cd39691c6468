"""The fleet's demonstration: three real clusters collected, planned, audited, mended and shown.

`make demo-fleet` runs it. It works in a directory of its own, on clusters of its own, and leaves
neither behind, whether it ends or is interrupted; the page alone is kept, to be looked at.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from confluent_kafka.admin import AdminClient, NewTopic

from reconciler.model import Broker
from reconciler.sandbox import start_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.sandbox import Cluster

ROOT = Path(__file__).resolve().parents[1]
ESTATE, PAGE = ROOT / "topics", ROOT / "build" / "demo-fleet.html"
COMMAND = Path(sys.executable).with_name("reconciler")
LAKE, PLANS = "lake", "plans"

SHAPES: Mapping[str, tuple[Broker, ...]] = {
    "prod-eu": tuple(Broker(n, f"eu-{'abc'[n % 3]}") for n in range(1, 7)),
    "prod-us": tuple(Broker(n, f"us-{'ab'[n % 2]}") for n in (11, 12, 13, 14)),
    "staging": tuple(Broker(n) for n in (1, 2, 3)),
}
HISTORY = {
    "prod-eu": [  # its spec has grown to 9 partitions since
        NewTopic("payments.captured", 6, 3, config={"min.insync.replicas": "2"}),
        NewTopic("legacy.clickstream", 4, 3),  # in no file
    ],
    "prod-us": [  # somebody has turned its configs by hand
        NewTopic("orders.events", 12, 3, config={"retention.ms": "86400000", "flush.ms": "1000"}),
    ],
    "staging": [  # its spec asks for 6 partitions, and Kafka takes none away
        NewTopic("shop.prices", 8, 3, config={"cleanup.policy": "compact"}),
    ],
}


class Stage:
    """The directory, the environment and the screen of one demonstration."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        shutil.copytree(ESTATE, directory / "topics")
        self.environment = {**os.environ}
        if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
            self.environment["FORCE_COLOR"] = "1"

    def say(self, text: str) -> None:
        """Tell the audience what comes next."""
        bold = ("\x1b[1m", "\x1b[0m") if "FORCE_COLOR" in self.environment else ("", "")
        print(f"\n{bold[0]}# {text}{bold[1]}", flush=True)

    def run(self, *words: str, expect: int | None = 0) -> None:
        """Run a command as a person would. Errors: SystemExit if it ends otherwise than told.

        None expects a report: 0, or 1 where it has something to say.
        """
        print(f"$ reconciler {' '.join(words)}", flush=True)
        code = subprocess.run(
            [COMMAND, *words], cwd=self.directory, env=self.environment, check=False
        ).returncode
        if code not in ((0, 1) if expect is None else (expect,)):
            raise SystemExit(f"reconciler {' '.join(words[:2])} exited {code}, not {expect}")

    def name_clusters(self, clusters: Mapping[str, Cluster]) -> None:
        """Put the clusters in the place of the example's."""
        file = self.directory / "topics" / "clusters.yaml"
        document = yaml.safe_load(file.read_text())
        document["clusters"] = {
            name: {
                "cluster_id": cluster.cluster_id,
                "client": {"bootstrap.servers": cluster.bootstrap_servers},
            }
            for name, cluster in clusters.items()
        }
        file.write_text(yaml.safe_dump(document, sort_keys=False))

    def amend_wish(self) -> None:
        """Let shop.prices, the last topic of its file, have on staging what it has there."""
        with (self.directory / "topics" / "shop.yaml").open("a") as file:
            file.write("overrides:\n  staging:\n    partitions: 8\n")

    def keep_page(self, name: str) -> None:
        """Keep a page that was written, where people find it."""
        PAGE.parent.mkdir(exist_ok=True)
        shutil.copyfile(self.directory / name, PAGE)
        print(f"it is kept as {PAGE.relative_to(ROOT)}", flush=True)


def play(stage: Stage, clusters: Mapping[str, Cluster]) -> None:
    """Play the demonstration from the first act to the last."""
    stage.say("They have a history: a topic too small, one turned by hand, one in no file, …")
    for name, topics in HISTORY.items():
        _create(clusters[name], topics)
    stage.name_clusters(clusters)

    stage.say("Every cluster and every spec, collected into tables")
    stage.run("fleet", "collect", "topics", "--lake", LAKE)
    stage.say("What would change anywhere? One wish cannot be granted, so this exits 1")
    stage.run("fleet", "plan", "topics", "--lake", LAKE, "--out", PLANS, expect=1)
    stage.say("What is unhealthy, whatever the specs say")
    stage.run("fleet", "audit", "topics", "--lake", LAKE, expect=None)
    stage.say("The same on one page, to be opened in a browser")
    stage.run("fleet", "report", "--lake", LAKE, "--out", PAGE.name)
    stage.keep_page(PAGE.name)

    stage.say("The plan of one cluster, read and applied as any other; then that of another")
    stage.run("show", f"{PLANS}/prod-eu.json")
    stage.run("apply", f"{PLANS}/prod-eu.json", "--auto-approve")
    stage.run("apply", f"{PLANS}/prod-us.json", "--auto-approve")
    stage.say("The wish that nobody can grant is amended in its file, and all is planned anew")
    stage.amend_wish()
    stage.run("fleet", "plan", "topics", "--live", "--lake", LAKE, "--out", PLANS)
    stage.run("apply", f"{PLANS}/staging.json", "--auto-approve")
    stage.say("Nothing is left to do anywhere, and the lake knows how it came to that")
    stage.run("fleet", "plan", "topics", "--live", "--lake", LAKE, "--detailed-exitcode")
    stage.run("fleet", "history", "--lake", LAKE)


def _create(cluster: Cluster, topics: list[NewTopic]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for created in admin.create_topics(topics).values():
        created.result()


def main() -> None:
    """Play, and clean up whatever happens."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="reconciler-demo-") as directory, ExitStack() as stack:
        stage = Stage(Path(directory))
        try:
            stage.say("Three real Kafka clusters of unlike brokers and racks, on this machine only")
            clusters = {}
            for name, shape in SHAPES.items():
                clusters[name] = stack.enter_context(start_cluster(shape=shape))
                racks = ", ".join(sorted({broker.rack or "no rack" for broker in shape}))
                print(f"  {name:<8} brokers {', '.join(str(b.id) for b in shape)}; {racks}")
            play(stage, clusters)
        except KeyboardInterrupt:
            print("\ninterrupted; cleaning up", file=sys.stderr)
            raise SystemExit(130) from None
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            stage.say("Cleaning up")


if __name__ == "__main__":
    main()
