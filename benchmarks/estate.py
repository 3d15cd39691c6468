"""Loading an estate of 50 to 400 clusters: twice the clusters, twice the time."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from reconciler.api.planning import load_estate

TOPICS = 20
CLUSTERS = """\
version: 1
policy: {name: {pattern: '[a-z0-9.-]+'}, config: {ranges: {retention.ms: {max: 30d}}}}
defaults: {replication_factor: 3, config: {min.insync.replicas: 2, retention.ms: 7d}}
clusters:
"""
CLUSTER = "{ignore: [connect-*], policy: {partitions: {max: 48}}, guards: {max_changed: 30%}}"


def write_estate(root: Path, clusters: int) -> None:
    """Write topics that go to every cluster, and name each with an override."""
    names = [f"cluster-{number:03}" for number in range(clusters)]
    lines = "".join(f"  {name}: {CLUSTER}\n" for name in names)
    (root / "clusters.yaml").write_text(CLUSTERS + lines)
    overrides = "".join(f"  {name}: {{partitions: 24}}\n" for name in names)
    topics = (f"topic: shop.t{n}\npartitions: 12\noverrides:\n{overrides}" for n in range(TOPICS))
    (root / "topics.yaml").write_text("---\n".join(topics))


def time_loading(clusters: int) -> float:
    """Return the CPU seconds of loading, the best of three."""
    with tempfile.TemporaryDirectory() as root:
        write_estate(Path(root), clusters)
        taken = []
        for _ in range(3):
            start = time.process_time()
            load_estate(Path(root))
            taken.append(time.process_time() - start)
    return min(taken)


if __name__ == "__main__":
    print(f"{TOPICS} topics on every cluster, loaded and checked: seconds of CPU")
    for count in (50, 100, 200, 400):
        print(f"  {count} clusters: {time_loading(count):.2f}")
