"""`reconciler import` without a cluster: from snapshots, and from other tools' files."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from reconciler.api.planning import load_estate
from reconciler.cli.app import run
from reconciler.spec.configs import choose_catalogue

BROKERS = [{"id": n, "rack": f"r{n}"} for n in (1, 2, 3)]
THROTTLE = "leader.replication.throttled.replicas"
TOPICS = [
    {"name": "orders.events", "partitions": [[1, 2, 3], [2, 3, 1]],
     "config": {"retention.ms": "604800000", THROTTLE: "*"}},
    {"name": "orders.state", "partitions": [[3, 1, 2]], "config": {"cleanup.policy": "compact"}},
    {"name": "mixed", "partitions": [[1], [1, 2]]},
    {"name": "bad", "partitions": [[1, 2, 3]], "config": {"cleanup.policy": "no-such"}},
    {"name": "connect-offsets", "partitions": [[1, 2, 3]]},
    {"name": "__consumer_offsets", "partitions": [[1, 2, 3]]},
]  # fmt: skip


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    return save(tmp_path, TOPICS)


def save(tmp_path: Path, topics: list[dict[str, object]]) -> str:
    path = tmp_path / "prod.json"
    document = {"cluster_id": "abc", "kafka_version": "4.1", "brokers": BROKERS, "topics": topics}
    path.write_text(json.dumps(document))
    return str(path)


def read(root: Path) -> dict[str, str]:
    return {p.relative_to(root).as_posix(): p.read_text() for p in sorted(root.rglob("*.yaml"))}


def test_a_first_import_writes_what_a_person_would_have(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "topics"
    assert run(["import", str(root), "--cluster", "prod", "--against", snapshot]) == 0
    texts = read(root)
    assert texts["orders.yaml"] == (
        "# yaml-language-server: $schema=../schemas/topic.schema.json\n"
        "topic: orders.events\npartitions: 2\nconfig:\n  retention.ms: 7d\n"
        "---\ntopic: orders.state\npartitions: 1\nconfig:\n  cleanup.policy: compact\n"
    )
    assert texts["mixed.yaml"].endswith("topic: mixed\npartitions: 2\nreplication_factor: null\n")
    assert texts["clusters.yaml"].startswith(
        "# yaml-language-server: $schema=../schemas/clusters.schema.json\n"
    )
    assert "defaults:\n  replication_factor: 3\n" in texts["clusters.yaml"]
    assert 'prod:\n    cluster_id: abc\n    kafka_version: "4.1"\n' in texts["clusters.yaml"]
    assert texts.keys() == {"clusters.yaml", "connect.yaml", "mixed.yaml", "orders.yaml"}
    said = capsys.readouterr().err
    assert "bad stays out of the specs: cleanup.policy" in said
    assert "replication_factor is left open for mixed: its partitions have 1 and 2" in said
    assert said.count("[import-left-out]") == said.count("[import-not-managed]") == 1
    assert "4 topics written" in said
    assert "the next plan is empty: 0 differences" in said
    plan = ["plan", str(root), "--cluster", "prod", "--against", snapshot, "--detailed-exitcode"]
    assert run(plan) == 0


def test_a_dry_run_shows_the_files_and_writes_none(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "topics"
    verb = ["import", str(root), "--cluster", "prod", "--against", snapshot]
    assert run([*verb, "--dry-run"]) == 0
    output = capsys.readouterr()
    assert "+topic: orders.events\n" in output.out
    assert "4 topics would be written" in output.err
    assert not root.exists()


def test_assignments_are_written_where_asked(snapshot: str, tmp_path: Path) -> None:
    root = tmp_path / "topics"
    verb = ["import", str(root), "--cluster", "prod", "--against", snapshot]
    assert run([*verb, "--assignments", "--topic", "orders.s*"]) == 0
    assert "assignment:\n  - [3, 1, 2]\n" in read(root)["orders.yaml"]
    assert "orders.events" not in read(root)["orders.yaml"]


def test_every_topic_that_is_named_is_written(snapshot: str, tmp_path: Path) -> None:
    root = tmp_path / "topics"
    verb = ["import", str(root), "--cluster", "prod", "--against", snapshot]
    assert run([*verb, "--topic", "orders.s*", "--topic", "mixed"]) == 0
    assert read(root).keys() == {"clusters.yaml", "mixed.yaml", "orders.yaml"}
    assert "orders.events" not in read(root)["orders.yaml"]


def test_what_cannot_be_amended_and_what_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = save(tmp_path, [{"name": "flow", "partitions": [[1, 2, 3]] * 2}])
    root = tmp_path / "topics"
    root.mkdir()
    (root / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}}\n")
    written = "{topic: flow, partitions: 1}\n--- {topic: gone, partitions: 1}\n"
    (root / "topics.yaml").write_text(written)
    assert run(["import", str(root), "--cluster", "prod", "--against", snapshot]) == 0
    assert (root / "topics.yaml").read_text() == written
    said = capsys.readouterr().err
    assert "flow in topics.yaml differs from the cluster and is kept as it is" in said
    assert "[import-kept]" in said
    assert "gone is written and not on the cluster: a plan creates it" in said
    assert "[import-differs]" in said


@pytest.mark.parametrize("cluster", ["prod", "new"])
def test_topics_that_others_own_stay_out(snapshot: str, tmp_path: Path, cluster: str) -> None:
    root = tmp_path / "topics"
    root.mkdir()
    owned = 'version: 1\nowns: ["orders.s*"]\nclusters: {prod: {}}\n'
    (root / "clusters.yaml").write_text(owned)
    assert run(["import", str(root), "--cluster", cluster, "--against", snapshot]) == 0
    assert read(root).keys() == {"clusters.yaml", "orders.yaml"}
    assert "orders.events" not in read(root)["orders.yaml"]


def test_ignored_topics_stay_out_and_clusters_yaml_keeps_its_comments(
    snapshot: str, tmp_path: Path
) -> None:
    root = tmp_path / "topics"
    root.mkdir()
    clusters = 'version: 1\n# Ours.\nclusters:\n  prod:\n    ignore: ["connect-*"]   # theirs\n'
    (root / "clusters.yaml").write_text(clusters)
    assert run(["import", str(root), "--cluster", "prod", "--against", snapshot]) == 0
    assert "connect.yaml" not in read(root)
    assert read(root)["clusters.yaml"].startswith("version: 1\n")
    kept = ('    ignore: ["connect-*"]   # theirs\n', "# Ours.\n")
    for line in (*kept, "  replication_factor: 3\n"):
        assert line in read(root)["clusters.yaml"]


def test_a_second_import_amends_adds_and_keeps(snapshot: str, tmp_path: Path) -> None:
    root = tmp_path / "topics"
    verb = ["import", str(root), "--cluster", "prod", "--against", snapshot]
    assert run(verb) == 0
    path = root / "orders.yaml"
    path.write_text(path.read_text().replace("partitions: 2", "# Two are enough.\npartitions: 2"))
    grown = {**TOPICS[0], "partitions": [[1, 2, 3]] * 4, "config": {"flush.ms": "60000"}}
    new = {"name": "orders.new", "partitions": [[1, 2, 3]]}
    save(tmp_path, [grown, *TOPICS[1:], new])
    assert run(verb) == 0
    assert path.read_text() == (
        "# yaml-language-server: $schema=../schemas/topic.schema.json\n"
        "topic: orders.events\n# Two are enough.\npartitions: 4\nconfig:\n  flush.ms: 1min\n"
        "---\ntopic: orders.state\npartitions: 1\nconfig:\n  cleanup.policy: compact\n"
        "---\ntopic: orders.new\npartitions: 1\n"
    )


def test_an_estate_that_cannot_be_read_is_left_alone(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "topics"
    root.mkdir()
    (root / "mine.yaml").write_text("topic: [\n")
    assert run(["import", str(root), "--cluster", "prod", "--against", snapshot]) == 1
    assert read(root) == {"mine.yaml": "topic: [\n"}
    assert f"{root}/mine.yaml:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass --cluster NAME to read a cluster, or --from TOOL"),
        (["a", "--cluster", "prod", "--from", "julie"], "pass --cluster NAME"),
        (
            ["a", "b", "--cluster", "c"],
            "2 paths given; write: reconciler import --cluster NAME DIR",
        ),
        (["--from", "julie"], "0 paths given; write: reconciler import --from TOOL PATH DIR"),
        (["a", "b", "--from", "julie", "--assignments"], "--from reads files only"),
        (["a", "./a", "--from", "julie"], "PATH and DIR are the same"),
        (["a", "b", "--from", "julie"], "there is no a; name a file or a directory"),
        (["a", "--cluster", "prod"], "pass --bootstrap-servers or --against"),
    ],
)
def test_what_is_off_about_a_call_is_said(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["import", *arguments]) == 64
    assert message in capsys.readouterr().err


def test_a_topic_written_for_other_clusters_comes_to_this_one_as_well(
    snapshot: str, tmp_path: Path
) -> None:
    root = tmp_path / "topics"
    root.mkdir()
    (root / "clusters.yaml").write_text("version: 1\nclusters: {prod: {}, test: {}}\n")
    (root / "orders.yaml").write_text(
        "topic: orders.state\nclusters: [test]   # for now\npartitions: 2\nreplication_factor: 3\n"
    )
    verb = ["import", str(root), "--cluster", "prod", "--against", snapshot]
    assert run([*verb, "--topic", "orders.state"]) == 0
    assert (root / "orders.yaml").read_text() == (
        "topic: orders.state\nclusters: [test, prod] # for now\npartitions: 2\n"
        "replication_factor: 3\noverrides:\n  prod:\n    partitions: 1\n"
        "    config:\n      cleanup.policy: compact\n"
    )


def test_the_sandbox_needs_no_entry(snapshot: str, tmp_path: Path) -> None:
    root = tmp_path / "topics"
    assert run(["import", str(root), "--cluster", "sandbox", "--against", snapshot]) == 0
    assert "clusters:" not in read(root)["clusters.yaml"].partition("version")[2]


def test_what_a_service_keeps_to_itself_stays_out_of_the_specs(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "topics"
    root.mkdir()
    (root / "clusters.yaml").write_text(
        "version: 1\nclusters: {prod: {known_configs: [cleanup.policy]}}\n"
    )
    verb = ["import", str(root), "--cluster", "prod", "--against", snapshot]
    assert run([*verb, "--topic", "orders.*"]) == 0
    text = read(root)["orders.yaml"]
    assert "retention.ms" not in text
    assert "cleanup.policy: compact" in text
    capsys.readouterr()
    plan = ["plan", str(root), "--cluster", "prod", "--against", snapshot, "--detailed-exitcode"]
    assert run(plan) == 0
    assert (
        "retention.ms is set on orders.events; it cannot be set there, so it is left alone"
        in capsys.readouterr().out
    )


def test_a_topic_is_written_without_what_no_spec_can_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"redpanda.remote.read": "true", "retention.ms": "604800000"}
    snapshot = save(tmp_path, [{"name": "flow", "partitions": [[1, 2, 3]], "config": config}])
    root = tmp_path / "topics"
    verb = ["import", str(root), "--cluster", "prod", "--against", snapshot]
    assert run(verb) == 0
    assert "config:\n  retention.ms: 7d\n" in read(root)["flow.yaml"]
    assert "redpanda" not in read(root)["flow.yaml"]
    left = "redpanda.remote.read is set on flow; Kafka 4.1 has no such topic config, so it is left"
    assert left in capsys.readouterr().err
    plan = ["plan", str(root), "--cluster", "prod", "--against", snapshot, "--detailed-exitcode"]
    assert run(plan) == 0
    assert left in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "written"),
    [("3.9", 'kafka_version: "3.9"'), ("4.4", 'kafka_version: "4.4"'), ("4.1", None)],
)
def test_a_version_is_recognised_by_the_configs_that_brokers_show(
    tmp_path: Path, line: str, written: str | None
) -> None:
    """Brokers do not tell their version, and a config of 3.9 alone is an error on any other."""
    keys = choose_catalogue(line).keys
    shown = {name: key.default for name, key in keys.items() if not key.internal and key.default}
    shown |= {name: "" for name, key in keys.items() if not key.internal and not key.default}
    own = {"message.format.version": "3.0-IV1"} if line == "3.9" else {"flush.ms": "5"}
    topics = [{"name": "flow", "partitions": [[1, 2, 3]], "config": own}]
    path = tmp_path / "prod.json"
    path.write_text(json.dumps({"brokers": BROKERS, "topics": topics, "config_defaults": shown}))
    root = tmp_path / "topics"
    options = ["--cluster", "prod", "--against", str(path)]
    assert run(["import", str(root), *options]) == 0
    assert next(iter(own)) in read(root)["flow.yaml"]
    clusters = read(root)["clusters.yaml"]
    assert written in clusters if written else "kafka_version" not in clusters
    assert run(["plan", str(root), *options, "--detailed-exitcode"]) == 0


DEFAULTS = {"retention.ms": "604800000", "cleanup.policy": "delete"}


def test_a_default_on_the_cluster_stays_one_after_the_first_import(tmp_path: Path) -> None:
    path = tmp_path / "prod.json"
    topics = [{"name": name, "partitions": [[1, 2, 3]]} for name in ("a", "b", "c")]
    topics += [
        {"name": name, "partitions": [[1, 2, 3]], "config": {"retention.ms": "604800000"}}
        for name in ("d", "e", "f", "g", "h", "i", "j")
    ]
    document = {"brokers": BROKERS, "topics": topics, "config_defaults": DEFAULTS}
    path.write_text(json.dumps(document))
    root = tmp_path / "topics"
    options = ["--cluster", "prod", "--against", str(path)]
    assert run(["import", str(root), *options]) == 0
    assert "retention.ms: 7d" in read(root)["clusters.yaml"]  # most topics have it
    assert "retention.ms: null" in read(root)["a.yaml"]
    assert run(["plan", str(root), *options, "--detailed-exitcode"]) == 0


def test_a_written_value_stays_where_it_is_the_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "prod.json"
    topics = [{"name": name, "partitions": [[1, 2, 3]]} for name in ("flow", "grown")]
    document = {"brokers": BROKERS, "topics": topics, "config_defaults": DEFAULTS}
    path.write_text(json.dumps(document))
    root = tmp_path / "topics"
    root.mkdir()
    (root / "clusters.yaml").write_text(
        "version: 1\ndefaults: {replication_factor: 3}\nclusters: {prod: {}}\n"
    )
    flow = "topic: flow\npartitions: 1\nconfig:\n  retention.ms: 1w\n"
    grown = "topic: grown\npartitions: 2\nconfig:\n  retention.ms: 1w\n"
    (root / "flow.yaml").write_text(flow)
    (root / "grown.yaml").write_text(grown)
    assert run(["import", str(root), "--cluster", "prod", "--against", str(path)]) == 0
    texts, said = read(root), capsys.readouterr().err
    assert texts["flow.yaml"] == flow
    assert texts["grown.yaml"] == grown.replace("partitions: 2", "partitions: 1")
    assert "values that are written for 2 topics are in force by the brokers' defaults" in said
    assert "import-differs" not in said
    assert said.count("[import-explicit]") == 1
    assert "the next plan is not empty: 2 differences" in said


def test_a_config_that_the_service_offers_is_written(tmp_path: Path) -> None:
    config = {"redpanda.remote.read": "true", "redpanda.leaders.preference": "racks:a,b"}
    snapshot = save(tmp_path, [{"name": "flow", "partitions": [[1, 2, 3]], "config": config}])
    root = tmp_path / "topics"
    root.mkdir()
    known = "[retention.ms, redpanda.remote.read, redpanda.leaders.preference]"
    (root / "clusters.yaml").write_text(
        f"version: 1\nclusters: {{prod: {{known_configs: {known}}}}}\n"
    )
    assert run(["import", str(root), "--cluster", "prod", "--against", snapshot]) == 0
    (wished,) = load_estate(root).topics_for("prod")
    assert wished.config == config
    plan = ["plan", str(root), "--cluster", "prod", "--against", snapshot, "--detailed-exitcode"]
    assert run(plan) == 0


def test_a_modeline_finds_the_schema_from_every_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "topics"
    many = [{"name": f"shop.{a}.t{n}", "partitions": [[1]]} for a in "ab" for n in range(30)]
    verb = ["import", str(root), "--cluster", "prod", "--against", save(tmp_path, many)]
    assert run(verb) == 0
    said = capsys.readouterr().err
    for name in ("topic", "clusters"):
        schema = tmp_path / "schemas" / f"{name}.schema.json"
        assert f"reconciler schema {name} > {schema}" in said
        schema.parent.mkdir(exist_ok=True)
        schema.touch()
    written = list(root.rglob("*.yaml"))
    assert {path.parent for path in written} == {root, root / "shop"}
    for path in written:
        modeline = path.read_text().partition("\n")[0]
        schema = modeline.removeprefix("# yaml-language-server: $schema=")
        assert (path.parent / schema).exists()
    save(tmp_path, [*many, {"name": "new", "partitions": [[1]]}])
    assert run(verb) == 0
    assert "reconciler schema" not in capsys.readouterr().err


FOREIGN = ("_schemas", "connect-offsets", "app-counts-changelog", "app-KSTREAM-1-repartition",
           "heartbeats", "mm2-offset-syncs.b.internal", "b.checkpoints.internal")  # fmt: skip


def test_other_software_s_topics_are_named_with_patterns_that_leave_them_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "topics"
    names = [*FOREIGN, "orders.changes", "shop.heartbeat"]
    topics = [{"name": name, "partitions": [[1]]} for name in names]
    verb = ["import", str(root), "--cluster", "prod", "--against", save(tmp_path, topics)]
    assert run(verb) == 0
    said = capsys.readouterr().err
    assert "7 new topics look like those that other software creates for itself: " in said
    assert "Schema Registry (_schemas)" in said
    options = re.search(
        r"remove their documents and import again with (.*) \[import-foreign\]", said
    )
    assert options is not None
    for path in root.rglob("*.yaml"):  # the way out, to the letter
        if path.name != "clusters.yaml":
            path.unlink()
    assert run([*verb, *shlex.split(options[1])]) == 0
    said = capsys.readouterr().err
    assert "import-foreign" not in said
    assert "2 topics written" in said
    assert {spec.name for spec in load_estate(root).topics_for("prod")} == set(names) - set(FOREIGN)
    plan = ["plan", str(root), "--cluster", "prod", "--against", str(tmp_path / "prod.json")]
    assert run([*plan, "--detailed-exitcode"]) == 0


def test_topics_that_are_written_already_are_nobody_else_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "topics"
    topics = [{"name": name, "partitions": [[1]]} for name in FOREIGN]
    verb = ["import", str(root), "--cluster", "prod", "--against", save(tmp_path, topics)]
    assert run(verb) == run(verb) == 0
    assert capsys.readouterr().err.count("import-foreign") == 1


def test_ignored_on_request_are_kept_beside_what_is_ignored_already(
    snapshot: str, tmp_path: Path
) -> None:
    root = tmp_path / "topics"
    root.mkdir()
    clusters = 'version: 1\nclusters:\n  prod:\n    ignore: ["mixed"]   # theirs\n'
    (root / "clusters.yaml").write_text(clusters)
    verb = ["import", str(root), "--cluster", "prod", "--against", snapshot]
    assert run([*verb, "--ignore", "connect-*", "--ignore", "mixed"]) == 0
    assert load_estate(root).clusters["prod"].ignore == ("mixed", "connect-*")
    assert "# theirs" in read(root)["clusters.yaml"]
    assert read(root).keys() == {"clusters.yaml", "orders.yaml"}


def test_a_new_cluster_gets_what_is_ignored_on_request(snapshot: str, tmp_path: Path) -> None:
    root = tmp_path / "topics"
    verb = ["import", str(root), "--against", snapshot, "--ignore", "connect-*"]
    assert run([*verb, "--cluster", "prod"]) == 0
    assert run([*verb, "--cluster", "sandbox"]) == 0
    clusters = load_estate(root).clusters
    assert clusters["prod"].ignore == clusters["sandbox"].ignore == ("connect-*",)


def adopt(snapshot: str, root: Path, *words: str) -> int:
    return run(["import", str(root), "--cluster", "prod", "--against", snapshot, *words])


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    root = tmp_path / "topics"
    root.mkdir()
    (root / "clusters.yaml").write_text("version: 1\nclusters: {prod: {ignore: [bad]}, lab: {}}\n")
    (root / "orders.yaml").write_text("# Ours.\ntopic: orders.events\nclusters: [prod]\n")
    return root


def test_leftovers_are_requests_to_delete_topics_that_no_file_names(
    snapshot: str, estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert adopt(snapshot, estate, "--absent", "orders.*", "--absent", "connect-*") == 0
    assert (estate / "orders.yaml").read_text() == (
        "# Ours.\ntopic: orders.events\nclusters: [prod]\n"
        "---\ntopic: orders.state\nclusters: [prod]\nstate: absent\n"
    )
    assert "topic: connect-offsets\n" in (estate / "connect.yaml").read_text()
    said = capsys.readouterr().err
    assert "2 deletions requested, and guards allow none" in said
    assert "write guards: {max_deletes: 2}" in said
    assert "[import-deletes]" in said
    assert "1 topic to delete looks like one that other software creates for itself" in said
    assert "unless that software is gone [import-foreign]" in said
    assert (
        "2 deletions requested; 2 files changed\nremove the requests for topics that must stay"
        in said
    )
    specs = load_estate(estate).topics_for("prod")
    assert [(spec.name, spec.absent) for spec in specs] == [
        ("connect-offsets", True),
        ("orders.events", False),
        ("orders.state", True),
    ]


@pytest.mark.parametrize(
    ("glob", "said"),
    [
        ("bad", "no live topic of prod that the estate manages matches bad"),
        ("none.*", "no live topic of prod that the estate manages matches none.*"),
        ("__consumer*", "no live topic of prod"),
        ("orders.events", "each of the 1 live topics that match orders.events on prod has a file"),
    ],
)
def test_a_pattern_without_a_leftover_is_an_error_and_writes_nothing(
    snapshot: str, estate: Path, glob: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = read(estate)
    assert adopt(snapshot, estate, "--absent", "mixed", "--absent", glob) == 64
    assert said in capsys.readouterr().err
    assert read(estate) == before


def test_a_leftover_that_files_name_for_another_cluster_is_kept(
    snapshot: str, estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (estate / "mixed.yaml").write_text("topic: mixed\nclusters: [lab]\n")
    assert adopt(snapshot, estate, "--absent", "mixed") == 0
    assert (estate / "mixed.yaml").read_text() == "topic: mixed\nclusters: [lab]\n"
    said = capsys.readouterr().err
    assert "add prod to its clusters, and write overrides: {prod: {state: absent}}" in said
    assert "[import-kept]" in said


def test_leftovers_belong_to_a_known_cluster_and_exclude_other_choices(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "none"
    assert adopt(snapshot, root, "--absent", "a*") == 64
    assert "no cluster is called 'prod'" in capsys.readouterr().err
    assert adopt(snapshot, root, "--absent", "a*", "--topic", "b") == 64
    assert not root.exists()


def test_an_unowned_topic_is_claimed(
    snapshot: str, estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (estate / "mixed.yaml").write_text(
        "topic: mixed\nclusters: [prod]\npartitions: 2\nowner: them\n"
    )
    words = ("--topic", "orders.*", "--topic", "mixed", "--owner", "shop-team")
    assert adopt(snapshot, estate, *words) == 0
    text = (estate / "orders.yaml").read_text()
    assert text.startswith("# Ours.\ntopic: orders.events\nowner: shop-team\nclusters: [prod]\n")
    assert "topic: orders.state\nowner: shop-team\n" in text
    assert "owner: them" in (estate / "mixed.yaml").read_text()
    said = capsys.readouterr().err
    assert "mixed has the owner them, at " in said
    assert "1 topic written, 1 amended" in said
    assert "the next plan is empty" in said


def test_a_claim_names_a_live_topic_and_a_valid_owner(
    snapshot: str, estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert adopt(snapshot, estate, "--topic", "gone", "--owner", "shop-team") == 64
    assert "no live topic of prod matches --topic 'gone'" in capsys.readouterr().err
    assert adopt(snapshot, estate, "--topic", "mixed", "--owner", "sh\u00f6p") == 64
    assert "use only ASCII letters" in capsys.readouterr().err


def test_where_brokers_place_replicas_no_assignment_is_written(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "topics"
    root.mkdir()
    clusters = "version: 1\nclusters: {prod: {cluster_id: abc, placement: broker}}\n"
    (root / "clusters.yaml").write_text(clusters)
    command = ["import", str(root), "--cluster", "prod", "--against", snapshot]
    assert run([*command, "--assignments"]) == 64
    assert "so its specs have no assignment; leave --assignments out" in capsys.readouterr().err
    assert run(command) == 0
