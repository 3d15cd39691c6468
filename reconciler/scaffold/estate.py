"""clusters.yaml and the first topic, such that its first plan refuses nothing."""

from __future__ import annotations

from reconciler.adopt.clusters import write_clusters
from reconciler.adopt.spelling import render_topic, spell_modeline
from reconciler.scaffold.answers import Answers, ClusterAnswer

EXAMPLE = "example.yaml"
REPLICAS = 3
"""The replication factor of a cluster that has enough brokers, or that could not be read."""

_STAGES = "\n# A merge reaches one stage after the other.\n"
_NO_CLUSTERS = """
# Each cluster has a name, and how its clients connect:
#
# clusters:
#   prod:
#     client:
#       bootstrap.servers: broker-1.example:9093
#       security.protocol: SASL_SSL
#       sasl.mechanism: SCRAM-SHA-512
#       sasl.username: ${env:KAFKA_USER}
#       sasl.password: ${env:KAFKA_PASSWORD}
#
# The cluster `sandbox` needs no entry: `reconciler sandbox up` starts it on this machine.
"""


def write_new_clusters(answers: Answers, *, defaults: bool = True) -> str:
    """Return clusters.yaml for a new repository; an import adds the `defaults` otherwise."""
    # With one size for all, a topic needs no count of its own, and no cluster refuses it.
    sizes = [cluster.brokers for cluster in answers.clusters] or [answers.sandbox_brokers]
    most = max(_replicas(size) for size in sizes)
    shared = {"defaults": describe_defaults(most)} if defaults else {}
    clusters = {
        cluster.name: _describe(cluster, most, defaults=defaults) for cluster in answers.clusters
    }
    text = write_clusters(None, shared, clusters)
    if not clusters:
        return text + _NO_CLUSTERS
    if len(answers.stages) > 1:
        stages = ", ".join(f"[{', '.join(stage)}]" for stage in answers.stages)
        text += f"{_STAGES}stages: [{stages}]\n"
    return text


def describe_defaults(replicas: int) -> dict[str, object]:
    """Return the defaults of topics with so many replicas: writes survive the loss of one."""
    in_sync = 2 if replicas >= REPLICAS else 1
    return {"replication_factor": replicas, "config": {"min.insync.replicas": str(in_sync)}}


def write_example(answers: Answers) -> str:
    """Return the file of the first topic: small, and complete where the defaults are."""
    document: dict[str, object] = {
        "topic": "example.events",
        "owner": _name_team(answers.platform),
        "description": "The first topic of this repository. Replace it with your own.",
        "partitions": 3,
        "config": {"retention.ms": "7d"},
    }
    return spell_modeline(EXAMPLE, "topic") + render_topic(document)


def _name_team(platform: tuple[str, ...]) -> str:
    """Return an owner who exists: otherwise the hosts ignore the line of the first topic."""
    return platform[0] if platform else "platform"


def _replicas(brokers: int | None) -> int:
    return REPLICAS if brokers is None else max(min(REPLICAS, brokers), 1)


def _describe(cluster: ClusterAnswer, most: int, *, defaults: bool) -> dict[str, object]:
    entry: dict[str, object] = {}
    if cluster.cluster_id is not None:
        entry["cluster_id"] = cluster.cluster_id
    entry["client"] = cluster.client
    if cluster.ignore:
        entry["ignore"] = list(cluster.ignore)
    own = _replicas(cluster.brokers)
    if defaults and own < most:
        entry["defaults"] = describe_defaults(own)
    return entry
