"""Data sources for Spark: live clusters, and spec trees at a commit, as tables.

They run on executors, so their options carry all input. Secrets are references, which are resolved
when a cluster is read. Sources only read.
"""

from typing import TYPE_CHECKING

from reconciler.exports import export_lazily

if TYPE_CHECKING:
    from reconciler.fleet.source.kafka_metadata import KafkaMetadata, choose_clusters
    from reconciler.fleet.source.spec_tree import SpecTree, Tree, find_tree
else:
    __getattr__ = export_lazily(
        __name__,
        {
            "kafka_metadata": "KafkaMetadata choose_clusters",
            "spec_tree": "SpecTree Tree find_tree",
        },
    )

__all__ = [
    "KafkaMetadata",
    "SpecTree",
    "Tree",
    "choose_clusters",
    "find_tree",
]
