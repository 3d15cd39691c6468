"""Estates: inheritance, targets, and where every value was written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from reconciler.api.planning import load_estate
from reconciler.errors import Location, Severity, SpecError, UsageError
from reconciler.model.cluster import TopicSpec
from reconciler.model.hours import MoveHours
from reconciler.model.moves import MoveKind, MovePolicy
from reconciler.placement.strategies import STRATEGIES
from reconciler.spec.documents import MOST_FINDINGS, load_clusters
from reconciler.spec.estate import Estate
from reconciler.spec.json_schema import build_clusters_schema
from reconciler.spec.keys import PLACEMENTS

CLUSTERS = """\
version: 1
defaults: {replication_factor: 3, config: {min.insync.replicas: 2}}
profiles:
  log: {partitions: 6, config: {compression.type: zstd, retention.ms: 3d}}
clusters:
  prod: {ignore: ["_schemas", "connect-*"], exclude_brokers: [7]}
  staging:
    defaults: {replication_factor: 1, config: {min.insync.replicas: 1}}
"""


def write(root: Path, **files: str) -> Path:
    """Write `clusters` and topic files into an estate."""
    for name, text in files.items():
        (root / f"{name}.yaml").write_text(text)
    return root


def load(root: Path, topics: str, clusters: str = CLUSTERS) -> Estate:
    return load_estate(write(root, clusters=clusters, topics=topics))


def resolve(root: Path, topic: str, cluster: str) -> TopicSpec:
    (spec,) = load(root, topic).topics_for(cluster)
    return spec


# The names of clusters.


@pytest.mark.parametrize("name", ["reconciler-requests", "Reconciler-Requests"])
def test_a_cluster_has_no_name_of_the_environment_that_opens_requests(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(SpecError, match=r"environment that opens requests; choose another name"):
        load(tmp_path, "", f"version: 1\nclusters: {{{name}: {{}}}}\n")


@pytest.mark.parametrize("name", ["staging-plan", "prod-eu-drift", "prod-PLAN", "a-plan-drift"])
def test_a_cluster_has_no_name_of_an_environment_of_another_one(tmp_path: Path, name: str) -> None:
    """Also where no other cluster has it yet: the next one to be added could."""
    text = f"version: 1\nclusters: {{{name}: {{}}}}\n"
    with pytest.raises(SpecError) as refused:
        load(tmp_path, "", text)
    (found,) = refused.value.findings
    cluster, _, kind = name.rpartition("-")
    assert str(found) == (
        f"{tmp_path}/clusters.yaml:2:12: the cluster '{name}' has the name of an environment of the"
        f" workflows: that of '{cluster}' for {kind.lower()}; choose a name that does not end in "
        "-plan or -drift [cluster-environment]"
    )
    assert not jsonschema.Draft7Validator(build_clusters_schema()).is_valid(
        {"version": 1, "clusters": {name: {}}}
    )
    # A request can rename it: its base may have this name.
    assert name in load_clusters(text.encode(), "then.yaml")


def test_clusters_do_not_differ_only_in_case(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"'Prod' and 'prod' differ only in case.*rename one of"):
        load(tmp_path, "", "version: 1\nclusters: {prod: {}, Prod: {}}\n")


def test_other_names_of_clusters_contain_these_words(tmp_path: Path) -> None:
    names = ("plan", "drift", "plan-b", "drift.eu", "prod-planet", "prodplan")
    text = "".join(f"  {name}: {{}}\n" for name in names)
    assert set(load(tmp_path, "", f"version: 1\nclusters:\n{text}").declared) == set(names)
    assert jsonschema.Draft7Validator(build_clusters_schema()).is_valid(
        {"version": 1, "clusters": {name: {} for name in names}}
    )


def test_a_later_layer_wins(tmp_path: Path) -> None:
    topic = (
        "topic: a\nprofile: log\nconfig: {retention.ms: 1d}\noverrides: {staging: {partitions: 2}}"
    )
    prod, staging = resolve(tmp_path, topic, "prod"), resolve(tmp_path, topic, "staging")
    assert (prod.partitions, prod.replication_factor) == (6, 3)
    assert (staging.partitions, staging.replication_factor) == (2, 1)
    assert prod.config == {
        "compression.type": "zstd",
        "min.insync.replicas": "2",
        "retention.ms": "86400000",
    }
    assert staging.config["min.insync.replicas"] == "1"


@pytest.mark.parametrize(
    ("stages", "held"),
    [
        ("", (("prod", "staging"),)),
        ("stages: [[staging], [prod]]", (("staging",), ("prod",))),
        ("stages: [[staging, sandbox, prod]]", (("staging", "sandbox", "prod"),)),
    ],
)
def test_a_merge_reaches_the_clusters_in_stages(
    stages: str, held: tuple[tuple[str, ...], ...], tmp_path: Path
) -> None:
    """Without stages, all clusters are one, without the sandbox; it may be in one by its name."""
    estate = load(tmp_path, "topic: a", f"{CLUSTERS}{stages}\n")
    assert estate.stages == held
    assert estate.staged == bool(stages)
    entry = estate.clusters["prod"]
    assert entry.stages == (held if stages else ())


def test_null_takes_an_inherited_value_away(tmp_path: Path) -> None:
    topic = "topic: a\nprofile: log\npartitions: null\nconfig: {compression.type: null}"
    spec = resolve(tmp_path, topic, "prod")
    assert spec.partitions is None
    assert "compression.type" not in spec.config


def test_every_value_knows_where_it_was_written(tmp_path: Path) -> None:
    topic = "topic: a\nprofile: log\nassignment:\n- [1, 2, 3]\n- [2, 3, 1]\n"
    spec = resolve(tmp_path, topic, "prod")
    topics, clusters = str(tmp_path / "topics.yaml"), str(tmp_path / "clusters.yaml")
    assert spec.location == Location(topics, 1, 8)
    assert spec.where("assignment.1") == Location(topics, 5, 3)
    assert spec.where("partitions") == Location(topics, 4, 1)
    assert spec.where("config.retention.ms") == Location(clusters, 4, 71)
    assert spec.where("config.min.insync.replicas") == Location(clusters, 2, 65)


def test_rows_win_over_inherited_counts(tmp_path: Path) -> None:
    spec = resolve(tmp_path, "topic: a\nprofile: log\nassignment: [[1, 2]]", "prod")
    assert (spec.partitions, spec.replication_factor) == (1, 2)


def test_an_override_can_take_rows_away(tmp_path: Path) -> None:
    topic = (
        "topic: a\nassignment: [[1, 2]]\noverrides: {staging: {assignment: null, partitions: 4}}"
    )
    spec = resolve(tmp_path, topic, "staging")
    assert (spec.assignment, spec.partitions, spec.replication_factor) == (None, 4, 1)


def test_counts_above_rows_clash_with_them(tmp_path: Path) -> None:
    topic = "topic: a\nassignment: [[1, 2]]\noverrides: {prod: {partitions: 4}}"
    with pytest.raises(SpecError) as refused:
        load(tmp_path, topic)
    assert [finding.rule for finding in refused.value.findings] == ["assignment-partitions"]


def test_sandbox_takes_topics_that_name_no_cluster(tmp_path: Path) -> None:
    estate = load(tmp_path, "topic: a\n---\ntopic: b\nclusters: [prod]")
    assert [spec.name for spec in estate.topics_for("sandbox")] == ["a"]
    assert estate.declared == ("prod", "staging")


def test_an_estate_without_clusters_has_the_sandbox(tmp_path: Path) -> None:
    write(tmp_path, topics="topic: a\npartitions: 3\nreplication_factor: 1")
    estate = load_estate(tmp_path)
    assert list(estate.clusters) == ["sandbox"]
    assert estate.topics_for("sandbox")[0].partitions == 3


def test_an_unknown_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no cluster 'prd'; did you mean prod"):
        load(tmp_path, "topic: a").topics_for("prd")


def test_what_is_wrong_on_the_sandbox_alone_waits_until_it_is_asked_for(tmp_path: Path) -> None:
    clusters = "version: 1\nclusters: {prod: {defaults: {replication_factor: 3}}}"
    clusters += "\ndefaults: {replication_factor: 1, config: {min.insync.replicas: 2}}"
    estate = load(tmp_path, "topic: a", clusters)
    assert len(estate.topics_for("prod")) == 1
    with pytest.raises(SpecError, match="on sandbox"):
        estate.topics_for("sandbox")


def test_cluster_entries_carry_what_a_run_needs(tmp_path: Path) -> None:
    entry = load(tmp_path, "topic: a").clusters["prod"]
    assert entry.ignore == ("_schemas", "connect-*")
    assert entry.exclude_brokers == {7}
    assert entry.location == Location(str(tmp_path / "clusters.yaml"), 6, 3)


def test_a_cluster_without_moves_moves_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "topic: a").clusters["prod"].moves is None


def test_moves_have_defaults_for_all_but_what_may_move_and_how_fast(tmp_path: Path) -> None:
    clusters = "version: 1\nclusters:\n  prod:\n    moves: {allow: [replication], rate: 30MiB}"
    entry = load(tmp_path, "topic: a", clusters).clusters["prod"]
    assert entry.moves == MovePolicy(frozenset({MoveKind.REPLICATION}), 30 * 2**20, 50, 5, 15)
    at = [entry.where(path) for path in ("moves", "moves.rate", "moves.max_bytes")]
    assert [(where.line, where.column) for where in at] == [(4, 5), (4, 35), (4, 5)]


def test_moves_are_read_as_written(tmp_path: Path) -> None:
    kinds = "[assignment, drain, rebalance, replication]"
    written = f"{{allow: {kinds}, rate: unlimited, at_once: {{cluster: 8, broker: 2}}"
    clusters = (
        f"version: 1\nclusters: {{prod: {{moves: {written}, keep_free: 0%, max_bytes: 2TiB}}}}}}"
    )
    entry = load(tmp_path, "topic: a", clusters).clusters["prod"]
    assert entry.moves == MovePolicy(frozenset(MoveKind), None, 8, 2, 0, 2 * 2**40)


def test_windows_of_moves_are_read_as_written(tmp_path: Path) -> None:
    clusters = """\
version: 1
clusters:
  prod:
    moves:
      allow: [drain]
      rate: 30MiB
      windows:
        weekend: {days: [sat, sun], from: "22:00", to: "06:00", zone: Europe/Berlin}
        noon: {from: "12:00", to: "24:00", zone: UTC}
"""
    entry = load(tmp_path, "topic: a", clusters).clusters["prod"]
    assert entry.move_hours == (
        MoveHours("noon", frozenset(range(7)), 720, 1440, "UTC"),
        MoveHours("weekend", frozenset({5, 6}), 1320, 360, "Europe/Berlin"),
    )


@pytest.mark.parametrize(
    ("cluster", "mine", "others"),
    [
        ("prod", "shop.a", "pay.a"),
        ("staging", "pay.a", "shop.a"),
        ("sandbox", "pay.a", "shop.a"),
    ],
)
def test_a_cluster_says_what_is_owned_or_the_estate_does(
    cluster: str, mine: str, others: str, tmp_path: Path
) -> None:
    clusters = 'version: 1\nowns: ["pay.*"]\nclusters: {prod: {owns: ["shop.*"]}, staging: {}}'
    entry = load(tmp_path, "topic: pay.a\nclusters: [staging]", clusters).clusters[cluster]
    assert (entry.manages(mine), entry.manages(others)) == (True, False)


def test_a_topic_that_is_not_owned_cannot_be_deleted_either(tmp_path: Path) -> None:
    clusters = 'version: 1\nclusters: {prod: {owns: ["shop.*"]}}'
    with pytest.raises(SpecError, match="topic-not-owned"):
        load(tmp_path, "topic: pay.a\nstate: absent", clusters)


def test_limits_of_an_audit_have_defaults_and_units(tmp_path: Path) -> None:
    """A share is in percent, a duration in milliseconds; what is left out has its default."""
    usual = load(tmp_path, "topic: a").audit
    own = f"{CLUSTERS}audit: {{skew: 30%, partitions_per_broker: 6000, disk_lasts: 7d}}\n"
    limits = load(tmp_path, "topic: a", own).audit
    assert (usual.skew, usual.partitions_per_broker, usual.disk_lasts) == (20, 4_000, 2_592_000_000)
    assert (limits.skew, limits.partitions_per_broker, limits.disk_lasts) == (
        30,
        6_000,
        604_800_000,
    )
    assert limits.misplaced == usual.misplaced == 5


@pytest.mark.parametrize(
    ("limit", "rule"),
    [("skew: 30", "value-form"), ("even_from: 0", "value-range"), ("skews: 30%", "key-unknown")],
)
def test_a_limit_of_an_audit_is_checked(limit: str, rule: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        load(tmp_path, "topic: a", f"{CLUSTERS}audit: {{{limit}}}\n")
    assert [found.rule for found in refused.value.findings] == [rule]


def test_all_findings_come_at_once(tmp_path: Path) -> None:
    write(tmp_path, clusters=CLUSTERS, one="topic: a\npartitions: x", two="topic: ..\nprofile: lg")
    with pytest.raises(SpecError) as refused:
        load_estate(tmp_path)
    rules = [finding.rule for finding in refused.value.findings]
    assert rules == ["value-count", "name-dots", "profile-unknown"]


def test_topics_are_not_blamed_for_a_broken_clusters_file(tmp_path: Path) -> None:
    write(tmp_path, clusters="version: 2", one="topic: a\nclusters: [prod]\nprofile: log")
    with pytest.raises(SpecError) as refused:
        load_estate(tmp_path)
    assert [finding.rule for finding in refused.value.findings] == ["value-range"]


@pytest.mark.parametrize("name", ["nowhere", "file.yaml"])
def test_a_path_that_is_no_directory_is_a_usage_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.yaml").write_text("topic: a")
    with pytest.raises(UsageError):
        load_estate(tmp_path / name)


def test_the_example_estate_runs_on_the_sandbox() -> None:
    estate = load_estate(Path(__file__).parents[3] / "topics")
    specs = estate.topics_for("sandbox")
    assert len(specs) == 12
    assert all(spec.partitions and spec.replication_factor for spec in specs)
    brokers = {b for spec in specs for row in spec.assignment or () for b in row}
    assert brokers <= set(range(1, 7))


@pytest.mark.parametrize(
    ("unit", "rule"),
    [
        ("k{n}: 1\n", "key-unknown"),
        ("---\n- x\n", "document-form"),
        ("a: 1\n", "yaml-duplicate-key"),
    ],
)
def test_a_file_that_is_wrong_from_end_to_end_is_not_told_from_end_to_end(
    tmp_path: Path, unit: str, rule: str
) -> None:
    counts = "partitions: 1\nreplication_factor: 1\n"
    write(tmp_path, topics=f"topic: a\n{counts}" + "".join(unit.format(n=n) for n in range(1_000)))
    with pytest.raises(SpecError) as refused:
        load_estate(tmp_path)
    assert rule in {finding.rule for finding in refused.value.findings}
    assert len(refused.value.findings) <= MOST_FINDINGS + 1


@pytest.mark.parametrize(
    ("version", "rule"), [("99.0", "kafka-version-newer"), ("2.8", "kafka-version-older")]
)
def test_a_kafka_without_a_catalogue_is_noted(tmp_path: Path, version: str, rule: str) -> None:
    clusters = f'version: 1\nclusters: {{prod: {{kafka_version: "{version}"}}}}'
    (note,) = load(tmp_path, "topic: a", clusters).findings
    assert (note.rule, note.severity) == (rule, Severity.NOTE)


def test_a_cluster_says_how_replicas_are_placed(tmp_path: Path) -> None:
    (tmp_path / "clusters.yaml").write_text(
        "version: 1\nclusters: {a: {strategy: striped, capacity: {7: 2, 9: 1}}, b: {}}\n"
    )
    clusters = load_estate(tmp_path).clusters
    assert (clusters["a"].strategy, dict(clusters["a"].capacity)) == ("striped", {7: 2, 9: 1})
    assert (clusters["b"].strategy, dict(clusters["b"].capacity)) == ("optimal", {})


def test_the_strategies_of_a_spec_are_those_of_placement() -> None:
    assert set(PLACEMENTS) == set(STRATEGIES)


def test_the_work_of_loading_grows_in_line_with_the_clusters(tmp_path: Path) -> None:
    policy = "{partitions: {max: 48}, rules: {few: {check: spec.partitions < 99, message: Few.}}}"
    steps: list[int] = []
    for count in (5, 20, 40, 60):
        names = [f"cluster-{number}" for number in range(count)]
        clusters = f"version: 1\npolicy: {policy}\nclusters:\n"
        clusters += "".join(f"  {name}: {{policy: {policy}}}\n" for name in names)
        overrides = ", ".join(f"{name}: {{partitions: 2}}" for name in names)
        topic = f"clusters: [{', '.join(names)}]\noverrides: {{{overrides}}}\npartitions: 1"
        (tmp_path / "topics.yaml").write_text(f"topic: a\n{topic}\n---\ntopic: b\n{topic}\n")
        (tmp_path / "clusters.yaml").write_text(clusters)
        steps.append(count_calls(lambda: load_estate(tmp_path)))
    _, few, more, most = steps  # the first run fills caches
    assert most - more == pytest.approx(more - few, rel=0.05)


def count_calls(work: Callable[[], object]) -> int:
    """Count the calls of Python functions: how much work is done, whatever the machine."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
