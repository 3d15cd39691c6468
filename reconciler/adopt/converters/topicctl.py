"""topicctl: cluster.yaml files, and files of topics with a meta and a spec."""

from __future__ import annotations

import re

from reconciler.adopt.converters.source import ForeignTopic, Source
from reconciler.model.cluster import Assignment
from reconciler.spec.values import YamlList, YamlMap, YamlText
from reconciler.units import MINUTE

_ABOUT = {"name", "cluster", "environment", "region", "description", "consumers"}
_SPEC = {"partitions", "replicationFactor", "retentionMinutes", "settings", "placement"}
_EVEN = {"any", "balanced-leaders", "cross-rack"}
"""Strategies that every placement here satisfies: even leaders, replicas spread over racks."""


def read_topicctl(source: Source) -> None:
    """Read clusters and topics; a document that has neither form is noted."""
    for document in source.documents:
        spec = source.get_table(document, "spec")
        if "bootstrapAddrs" in spec or "zkAddrs" in spec:
            _read_cluster(source.get_table(document, "meta"), spec, source)
        elif "meta" in document and "spec" in document:
            _read_topic(source.get_table(document, "meta"), spec, source)
        else:
            source.note(
                "a document with no meta and spec is not a topic of topicctl", document.where
            )


def _read_cluster(about: YamlMap, spec: YamlMap, source: Source) -> None:
    name = source.read_text(about, "name") or "cluster"
    entry = source.clusters.setdefault(name, {})
    if description := source.read_text(about, "description"):
        entry["description"] = description
    if cluster_id := source.read_text(spec, "clusterID"):
        entry["cluster_id"] = cluster_id
    addresses = spec.get("bootstrapAddrs")
    if isinstance(addresses, YamlList) and addresses:
        entry["client"] = {"bootstrap.servers": ",".join(map(str, addresses))}
    known = {"name", "environment", "region", "description"}
    source.note_rest(about, known, f"cluster {name}, meta")
    source.note_rest(spec, {"bootstrapAddrs", "clusterID"}, f"cluster {name}, spec")


def _read_topic(about: YamlMap, spec: YamlMap, source: Source) -> None:
    name = about.get("name")
    if not isinstance(name, YamlText):
        source.note("a topic has no meta.name", about.where, "write one")
        return
    source.note_rest(about, _ABOUT - {"consumers"}, f"{name}, meta")
    source.note_rest(spec, _SPEC, name)
    cluster = source.read_text(about, "cluster")
    if cluster is not None:
        source.clusters.setdefault(cluster, {})
    config = source.read_config(spec.get("settings"), name)
    minutes = source.read_count(spec, "retentionMinutes", name)
    if minutes is not None:
        config["retention.ms"] = str(minutes * MINUTE)
    source.topics.append(
        ForeignTopic(
            str(name),
            name.where,
            cluster,
            source.read_count(spec, "partitions", name),
            source.read_count(spec, "replicationFactor", name),
            config,
            _read_placement(source.get_table(spec, "placement"), name, source),
            source.read_text(about, "description"),
        )
    )


def _read_placement(placement: YamlMap, name: str, source: Source) -> Assignment | None:
    """Read manual rows. Report other strategies, unless every placement here satisfies them."""
    source.note_rest(placement, {"strategy", "staticAssignments"}, f"{name}, placement")
    strategy = placement.get("strategy")
    rows = placement.get("staticAssignments")
    if strategy == "static" and isinstance(rows, YamlList) and rows:
        is_row = [
            isinstance(row, YamlList)
            and all(isinstance(b, YamlText) and re.fullmatch(r"[0-9]{1,9}", b) for b in row)
            for row in rows
        ]
        if all(is_row):
            return tuple(tuple(map(int, row)) for row in rows)
        way_out = "write assignment: by hand"
        source.note(f"{name}: its rows are not lists of broker ids", placement.where, way_out)
    elif isinstance(strategy, YamlText) and strategy not in _EVEN:
        way_out = "replicas are spread over racks here; rack_aware: false turns that off"
        source.note(f"{name}: placement {strategy} has no counterpart", strategy.where, way_out)
    return None
