"""topicctl in the comparison: a dry run, and the apply."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tool import Place, Step, Topic, find

CLUSTER = """\
meta: {{name: sandbox, environment: test, region: local}}
spec:
  bootstrapAddrs: [{servers}]
  clusterID: {cluster_id}
"""
TOPIC = """\
meta: {{name: {name}, cluster: sandbox, environment: test, region: local}}
spec:
  partitions: {partitions}
  replicationFactor: {replication}
  placement: {{strategy: cross-rack, picker: cluster-use}}
"""


class Topicctl:
    """With the strategy that its `bootstrap` writes, and the picker that looks at the cluster."""

    name = "topicctl"

    def version(self) -> str:
        """Return what `topicctl --version` says."""
        said = subprocess.run(
            [find_topicctl(), "--version"], capture_output=True, text=True, check=True
        )
        return said.stdout.split()[2]

    def environment(self, place: Place) -> dict[str, str]:
        """Write the cluster's file; nothing is needed in the environment."""
        servers = ", ".join(f'"{server}"' for server in place.servers.split(","))
        text = CLUSTER.format(servers=servers, cluster_id=place.cluster_id)
        (place.directory / "cluster.yaml").write_text(text)
        return {}

    def steps(
        self, before: Sequence[Topic], wanted: Sequence[Topic], place: Place
    ) -> Sequence[Step]:
        """Write one file for all."""
        (place.directory / "topics.yaml").write_text("---\n".join(map(_document, wanted)))
        apply = (find_topicctl(), "apply", "--no-spinner", "--cluster-config", "cluster.yaml")
        return (
            Step("plan", (*apply, "--dry-run", "topics.yaml")),
            Step("apply", (*apply, "--skip-confirm", "topics.yaml")),
        )


def find_topicctl() -> str:
    """Return the path of the program. Errors: Missing."""
    return find("topicctl", "TOPICCTL")


def _document(topic: Topic) -> str:
    text = TOPIC.format(name=topic.name, partitions=topic.partitions, replication=topic.replication)
    if topic.config:
        text += "  settings:\n" + "".join(f"    {k}: {v}\n" for k, v in topic.config)
    return text
