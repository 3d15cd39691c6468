"""clusters.yaml amended: what is new comes where a person would write it."""

from __future__ import annotations

from reconciler.adopt.clusters import write_clusters

WRITTEN = """\
# The clusters, and what their topics inherit.
version: 1
defaults:
  replication_factor: 3

# Each cluster has a name.
"""


def test_the_first_cluster_comes_behind_what_all_clusters_share() -> None:
    assert write_clusters(WRITTEN, {}, {"sandbox": {"ignore": ["connect-*"]}}) == (
        "# The clusters, and what their topics inherit.\n"
        "version: 1\n"
        "defaults:\n"
        "  replication_factor: 3\n"
        "clusters:\n"
        "  sandbox:\n"
        "    ignore: [connect-*]\n"
        "\n"
        "# Each cluster has a name.\n"
    )


def test_one_more_cluster_comes_behind_the_others() -> None:
    text = "version: 1\nclusters:\n  dev: {}\nowns: [a]\n"
    assert write_clusters(text, {}, {"prod": {"ignore": ["b"]}}) == (
        "version: 1\nclusters:\n  dev: {}\n  prod:\n    ignore: [b]\nowns: [a]\n"
    )
