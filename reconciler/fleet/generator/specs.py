"""The specs of a synthetic fleet, as rows and as equal files.

A location is the place where `write_topic_files` and `write_clusters_file` write the value, so that
specs have locations even if the fleet is too large for files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from reconciler.errors import Location
from reconciler.fleet.generator.shapes import ClusterShape
from reconciler.fleet.generator.topics import OWNERS, PROFILES, USUAL_REPLICATION, Topics
from reconciler.fleet.generator.troubles import Trouble
from reconciler.model.cluster import TopicSpec
from reconciler.spec.estate import parse_estate

CLUSTERS_FILE = "clusters.yaml"
KAFKA_VERSION = "4.1"
IN_SYNC = "min.insync.replicas"

_DEFAULTS = f"replication_factor: {USUAL_REPLICATION}, config: {{{IN_SYNC}: 2}}"
_HEADER = (
    "# A synthetic fleet, made by `reconciler fleet generate`. These clusters do not exist.",
    "version: 1",
    f"defaults: {{{_DEFAULTS}}}",
    "profiles:",
)
_PROFILE_LINES = tuple(
    line
    for name, config in PROFILES.items()
    for line in (f"  {name}:", "    config:", *(f"      {k}: {v}" for k, v in config.items()))
)


def write_clusters_file(shapes: Sequence[ClusterShape], troubles: Sequence[Trouble] = ()) -> str:
    """Return the text of clusters.yaml: clusters, profiles and defaults.

    With `troubles`, also stages: those of the troubles that have one of their own are the second.
    """
    lines = [*_HEADER, *_PROFILE_LINES, "clusters:"]
    for shape in sorted(shapes, key=lambda shape: shape.name):
        lines += _write_entry(shape.name, shape.cluster_id)
    for trouble in troubles:
        lines += [*_write_entry(trouble.name, trouble.cluster_id), *trouble.entry]
    if troubles:
        staged = [trouble.name for trouble in troubles if trouble.staged]
        others = [trouble.name for trouble in troubles if not trouble.staged]
        first = ", ".join([*(shape.name for shape in shapes), *others])
        lines += ["stages:", f"  - [{first}]", f"  - [{', '.join(staged)}]"]
    return "\n".join(lines) + "\n"


def _write_entry(name: str, cluster_id: str) -> list[str]:
    return [
        f"  {name}:",
        "    description: synthetic",
        f"    cluster_id: {cluster_id}",
        f'    kafka_version: "{KAFKA_VERSION}"',
        f'    client: {{bootstrap.servers: "{name}.invalid:9092"}}',
    ]


def write_trouble_files(troubles: Sequence[Trouble]) -> Mapping[str, str]:
    """Return the specs of troubles as files, one per cluster that has topics. Returns: by path."""
    texts = {f"{trouble.name}/trouble.yaml": trouble.write_file() for trouble in troubles}
    return {path: text for path, text in texts.items() if text}


def list_trouble_specs(
    root: str, shapes: Sequence[ClusterShape], troubles: Sequence[Trouble]
) -> Mapping[str, Sequence[TopicSpec]]:
    """Return the specs of troubles by cluster, as their files below `root` say them."""
    texts = {CLUSTERS_FILE: write_clusters_file(shapes, troubles), **write_trouble_files(troubles)}
    estate = parse_estate({path: text.encode() for path, text in texts.items()}, root)
    return {trouble.name: estate.topics_for(trouble.name) for trouble in troubles}


def write_topic_files(root: str, shape: ClusterShape, topics: Topics) -> Mapping[str, str]:
    """Return the specs of a cluster as files, one per owner. Returns: text by path."""
    documents: dict[str, list[str]] = {}
    for spec in list_specs(root, shape, topics):
        documents.setdefault(spec.location.file, []).append(_spell(shape.name, spec))
    return {file: "---\n".join(texts) for file, texts in documents.items()}


def list_specs(root: str, shape: ClusterShape, topics: Topics) -> Iterator[TopicSpec]:
    """Yield the specs of a cluster by name, each with its location in a file below `root`."""
    inherited = _locate_inherited(f"{root}/{CLUSTERS_FILE}")
    next_line: Counter[str] = Counter()
    wished = topics.wished_partitions.tolist()
    usual = topics.wished_replication == USUAL_REPLICATION
    for row in sorted(range(len(wished)), key=topics.names.__getitem__):
        if not wished[row]:
            continue
        owner = OWNERS[topics.owner[row]]
        file = f"{root}/{shape.name}/{owner}.yaml"
        yield _make_spec(topics, row, Location(file, next_line[file] + 1, 8), inherited)
        next_line[file] += 6 if usual[row] else 8


def choose_config(profile: str, replication: int) -> dict[str, str]:
    """Return the configs of a spec, by key."""
    config = {**PROFILES[profile], IN_SYNC: "2" if replication == USUAL_REPLICATION else "1"}
    return dict(sorted(config.items()))


def _make_spec(
    topics: Topics, row: int, where: Location, inherited: Mapping[str, Mapping[str, Location]]
) -> TopicSpec:
    profile = tuple(PROFILES)[topics.profile[row]]
    replication = int(topics.wished_replication[row])
    fields = {**inherited[profile], "partitions": Location(where.file, where.line + 3, 13)}
    if replication != USUAL_REPLICATION:
        fields["replication_factor"] = Location(where.file, where.line + 5, 21)
        fields[f"config.{IN_SYNC}"] = Location(where.file, where.line + 6, 31)
    return TopicSpec(
        name=topics.names[row],
        location=where,
        partitions=int(topics.wished_partitions[row]),
        replication_factor=replication,
        config=MappingProxyType(choose_config(profile, replication)),
        owner=OWNERS[topics.owner[row]],
        profile=profile,
        fields=MappingProxyType(fields),
    )


def _spell(cluster: str, spec: TopicSpec) -> str:
    lines = [
        f"topic: {spec.name}",
        f"owner: {spec.owner}",
        f"clusters: [{cluster}]",
        f"partitions: {spec.partitions}",
        f"profile: {spec.profile}",
    ]
    if spec.replication_factor != USUAL_REPLICATION:
        lines.append(f"replication_factor: {spec.replication_factor}")
        lines.append(f"config: {{{IN_SYNC}: {spec.config[IN_SYNC]}}}")
    return "\n".join(lines) + "\n"


def _locate_inherited(file: str) -> Mapping[str, Mapping[str, Location]]:
    """Return the locations in clusters.yaml of the values of each profile, with the defaults."""
    defaults = _HEADER[2]
    common = {
        "replication_factor": Location(file, 3, defaults.index(f"{USUAL_REPLICATION},") + 1),
        f"config.{IN_SYNC}": Location(file, 3, defaults.index("2}}") + 1),
    }
    places = {name: dict(common) for name in PROFILES}
    line = len(_HEADER)
    for name, config in PROFILES.items():
        for at, key in enumerate(config, line + 3):
            places[name][f"config.{key}"] = Location(file, at, len(f"      {key}: ") + 1)
        line += 2 + len(config)
    return places
