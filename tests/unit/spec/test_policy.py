"""Policies as clusters.yaml has them: read, laid over each other, and held against topics."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from shorthand import said

from reconciler.api.planning import load_estate
from reconciler.cli.app import run
from reconciler.errors import Severity, SpecError
from reconciler.policy.facts import FACTS_OF_CHANGES
from reconciler.policy.policy import Bounds, Limit, Policy
from reconciler.spec.estate import Estate
from reconciler.spec.json_schema import build_topic_schema

CLUSTERS = """\
version: 1
defaults: {config: {segment.ms: 1h}}
policy:
  name: {pattern: '[a-z.]+'}
  owner: required
  partitions: {min: 2, max: 12}
  config:
    allow: [retention.*]
    ranges: {retention.ms: {max: 7d}, retention.bytes: {max: 1GiB}}
  rules:
    even: {check: spec.partitions % 2 == 0, message: Even counts only.}
clusters:
  prod: {}
  lab:
    policy:
      owner: optional
      partitions: {max: 4}
      rules:
        even: {check: 'true', message: Never.}
        loud: {check: spec.owner != null, message: Nobody owns it, severity: warning}
"""


def load(root: Path, topics: str, clusters: str = CLUSTERS) -> Estate:
    (root / "clusters.yaml").write_text(clusters)
    (root / "topics.yaml").write_text(topics)
    return load_estate(root)


def refuse(root: Path, topics: str, clusters: str = CLUSTERS) -> list[str]:
    """Return rules and lines of what is wrong."""
    with pytest.raises(SpecError) as refused:
        load(root, topics, clusters)
    return [f"{f.where.line if f.where else 0} {f.rule}" for f in refused.value.findings]


def test_a_clusters_policy_is_laid_over_the_estates(tmp_path: Path) -> None:
    estate = load(tmp_path, "topic: a\nowner: me\npartitions: 4\n")
    prod, lab = (estate.clusters[name].policy for name in ("prod", "lab"))
    assert (prod.owner, lab.owner) == (True, False)
    assert lab.partitions == Bounds(Limit(2, "2"), Limit(4, "4"))
    assert lab.ranges == prod.ranges == estate.clusters["sandbox"].policy.ranges
    assert prod.ranges["retention.ms"] == Bounds(most=Limit(604_800_000, "7d"))
    assert lab.rules.keys() == {"even", "loud"}


def test_every_finding_stands_on_its_own_line(tmp_path: Path) -> None:
    topic = (
        "topic: A\npartitions: 13\nconfig:\n  retention.ms: 8d\n"
        "  segment.ms: 2h\n  retention.bytes: -1\n"
    )
    assert refuse(tmp_path, topic) == [
        "1 policy-name",
        "1 policy-owner",
        "2 policy-partitions",
        "2 policy-rule",
        "4 policy-config-value",
        "5 policy-config",
        "6 policy-config-value",
    ]


def test_different_rules_that_one_line_breaks_are_told_each(tmp_path: Path) -> None:
    rule = "rules: {{{name}: {{check: spec.partitions > 9, message: More.}}}}"
    clusters = "version: 1\nclusters:\n" + "".join(
        f"  {cluster}: {{policy: {{{rule.format(name=name)}}}}}\n"
        for cluster, name in (("a", "one"), ("b", "one"), ("c", "two"))
    )
    with pytest.raises(SpecError) as refused:
        load(tmp_path, "topic: a\npartitions: 3\n", clusters)
    whats = [finding.what for finding in refused.value.findings]
    assert whats[0].startswith("'a' breaks the rule one")
    assert whats[-1].startswith("'a' breaks the rule two")


def test_a_warning_lets_the_estate_pass(tmp_path: Path) -> None:
    estate = load(tmp_path, "topic: a\nclusters: [lab]\npartitions: 4\n")
    (finding,) = estate.findings
    assert finding.severity is Severity.WARNING
    assert "'a' breaks the rule loud: Nobody owns it" in finding.what


SEVERITIES = """\
version: 1
policy:
  name: {pattern: '[a-z.]+'}
  owner: required
  description: required
  partitions: {max: 3}
  replication_factor: {min: 3}
  config:
    deny: [segment.*]
    require: [flush.ms]
    ranges: {retention.ms: {max: 1d}, retention.bytes: {max: 1GiB}}
  per_owner: {topics: 1, partitions: 3}
  severity:
    policy-name: note
    policy-owner: note
    policy-description: warning
    policy-partitions: warning
    policy-replication: warning
    policy-config: {segment.ms: note}
    policy-config-missing: {flush.ms: warning}
    policy-config-value: {retention.ms: warning, retention.bytes: note}
    quota-per-owner: {topics: note, partitions: warning}
clusters: {prod: {}}
"""
BREAKS_ALL = """\
topic: A
partitions: 4
replication_factor: 1
config: {segment.ms: 1h, retention.ms: 2d, retention.bytes: 2GiB}
---
topic: b
owner: me
---
topic: c
owner: me
"""


def test_every_limit_has_a_severity_of_its_own(tmp_path: Path) -> None:
    findings = load(tmp_path, BREAKS_ALL, SEVERITIES).findings
    assert {(finding.rule, finding.severity) for finding in findings} == {
        ("policy-name", Severity.NOTE),
        ("policy-owner", Severity.NOTE),
        ("policy-description", Severity.WARNING),
        ("policy-partitions", Severity.WARNING),
        ("policy-replication", Severity.WARNING),
        ("policy-config", Severity.NOTE),
        ("policy-config-missing", Severity.WARNING),
        ("policy-config-value", Severity.WARNING),
        ("policy-config-value", Severity.NOTE),
        ("quota-per-owner", Severity.NOTE),
        ("quota-per-owner", Severity.WARNING),
    }


def test_a_cluster_weighs_a_limit_of_the_estate_otherwise(tmp_path: Path) -> None:
    strict = "{prod: {policy: {severity: {policy-partitions: error}}}}"
    clusters = SEVERITIES.replace("{prod: {}}", strict)
    assert refuse(tmp_path, BREAKS_ALL, clusters) == ["2 policy-partitions"]


def test_an_estate_without_clusters_holds_to_its_policy(tmp_path: Path) -> None:
    clusters = "version: 1\npolicy: {owner: required}\n"
    assert refuse(tmp_path, "topic: a\n", clusters) == ["1 policy-owner"]


def test_broken_rules_are_found_without_any_topic(tmp_path: Path) -> None:
    clusters = (
        "version: 1\npolicy:\n  rules:\n    a:\n      check: spec.x\n      message: x\n"
        "clusters: {prod: {}, lab: {}}\n"
    )
    assert refuse(tmp_path, "", clusters) == ["5 policy-expression"]


OFFERED = """\
version: 1
defaults: {config: {min.insync.replicas: 2}}
clusters:
  own: {}
  cloud:
    known_configs: [retention.ms]
"""


def test_a_service_is_asked_for_what_it_knows(tmp_path: Path) -> None:
    topic = "topic: a\nconfig: {retention.ms: 1d, segment.ms: 1h}\n"
    with pytest.raises(SpecError) as refused:
        load(tmp_path, topic, OFFERED)
    shown = [str(f).removeprefix(f"{tmp_path}/") for f in refused.value.findings]
    assert shown == [
        "clusters.yaml:2:42: min.insync.replicas is not among the known_configs of cloud, whose "
        "service refuses others; remove it, or write clusters: {cloud: {defaults: {config: "
        "{min.insync.replicas: null}}}} [config-not-offered]",
        "topics.yaml:2:40: segment.ms is not among the known_configs of cloud, whose service "
        "refuses others; remove it, or write overrides: {cloud: {config: {segment.ms: null}}} "
        "[config-not-offered]",
    ]


def test_a_service_has_configs_of_its_own(tmp_path: Path) -> None:
    clusters = OFFERED.replace("[retention.ms]", "[retention.ms, redpanda.remote.read]")
    clusters = clusters.replace("{config: {min.insync.replicas: 2}}", "{}")
    topic = (
        "topic: a\nconfig: {retention.ms: 1d}\noverrides:\n"
        "  cloud: {config: {redpanda.remote.read: true}}\n"
    )
    estate = load(tmp_path, topic, clusters)
    (here,), (there,) = estate.topics_for("cloud"), estate.topics_for("own")
    assert here.config == {"retention.ms": "86400000", "redpanda.remote.read": "true"}
    assert there.config == {"retention.ms": "86400000"}


def test_a_config_of_a_service_is_text_as_it_is_written(tmp_path: Path) -> None:
    clusters = OFFERED.replace("[retention.ms]", "[a.time, a.flag, a.text]").replace(
        "min.insync.replicas: 2", "a.flag: false"
    )
    clusters = clusters.replace("  own: {}\n", "")
    topic = 'topic: a\nconfig: {a.time: 7d, a.text: "x,y"}\n'
    (spec,) = load(tmp_path, topic, clusters).topics_for("cloud")
    assert spec.config == {"a.flag": "false", "a.text": "x,y", "a.time": "7d"}
    for value in ("[x, y]", "{b: c}"):
        with pytest.raises(SpecError):
            load(tmp_path, f"topic: a\nconfig: {{a.text: {value}}}\n", clusters)


@pytest.mark.parametrize("written", ["true", "True", "TRUE", '"True"'])
def test_a_flag_of_a_service_has_one_spelling(tmp_path: Path, written: str) -> None:
    """A service shows it in small letters, and a plan compares the texts."""
    clusters = OFFERED.replace("[retention.ms]", "[a.flag, a.text, min.insync.replicas]")
    clusters += "policy: {config: {values: {a.flag: [True]}}}\n"
    topic = f"topic: a\nclusters: [cloud]\nconfig: {{a.flag: {written}, a.text: Truely}}\n"
    (spec,) = load(tmp_path, topic, clusters).topics_for("cloud")
    assert spec.config == {"a.flag": "true", "a.text": "Truely", "min.insync.replicas": "2"}


def test_null_says_that_a_config_of_a_service_is_not_to_be_set(tmp_path: Path) -> None:
    clusters = OFFERED.replace("[retention.ms]", "[retention.ms, redpanda.remote.read]")
    clusters = clusters.replace("min.insync.replicas: 2", "retention.ms: 1d")
    topic = "topic: a\nconfig: {redpanda.remote.read: null, segment.ms: null}\n"
    (spec,) = load(tmp_path, topic, clusters).topics_for("cloud")
    assert spec.unset == {"redpanda.remote.read"}


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            "config: {retenton.ms: null}",
            "Kafka 4.4 has no topic config 'retenton.ms'; did you mean retention.ms? "
            "[config-unknown]",
        ),
        (
            "clusters: [own]\noverrides: {cloud: {config: {redpanda.remote.raed: null}}}",
            "Kafka 4.4 has no topic config 'redpanda.remote.raed'; did you mean "
            "redpanda.remote.read? [config-unknown]",
        ),
        (
            "config: {confluent.tier.enable: null}",
            "Kafka 4.4 has no topic config 'confluent.tier.enable'; remove it from the "
            "spec, or list it in known_configs if the service has it [config-unknown]",
        ),
        (
            "config: {leader.replication.throttled.replicas: null}",
            "leader.replication.throttled.replicas is not managed: it belongs to the tools "
            "that move partitions, which set and clear it; remove it from the spec "
            "[config-not-managed]",
        ),
        (
            "config: {internal.segment.bytes: null}",
            "internal.segment.bytes is internal to Kafka's own tests: brokers accept it and never "
            "show it; remove it from the spec [config-internal]",
        ),
    ],
)
def test_null_removes_nothing_that_no_spec_can_name(
    tmp_path: Path, written: str, shown: str
) -> None:
    clusters = OFFERED.replace("[retention.ms]", "[retention.ms, redpanda.remote.read]")
    clusters = clusters.replace("min.insync.replicas: 2", "retention.ms: 1d")
    with pytest.raises(SpecError) as refused:
        load(tmp_path, f"topic: a\n{written}\n", clusters)
    found = [str(f).split(": ", 1)[1] for f in refused.value.findings]
    assert shown in found


def test_null_may_name_what_another_release_or_another_service_has(tmp_path: Path) -> None:
    clusters = OFFERED.replace("[retention.ms]", "[min.insync.replicas, redpanda.remote.read]")
    topic = "topic: a\nconfig: {message.format.version: null, redpanda.remote.read: null}\n"
    estate = load(tmp_path, topic, clusters)
    assert {spec.unset for spec in estate.topics_for("cloud")} == {
        frozenset({"message.format.version", "redpanda.remote.read"})
    }
    assert [spec.config for spec in estate.topics_for("own")] == [{"min.insync.replicas": "2"}]


SERVICE = """\
version: 1
clusters:
  own: {}
  cloud:
    known_configs: [retention.ms, redpanda.remote.read, confluent.tier.local.hotset.ms]
    policy:
      config:
        allow: [retention.ms, redpanda.*]
        deny: [confluent.tier.*]
        values: {redpanda.remote.read: [true]}
        ranges: {confluent.tier.local.hotset.ms: {max: 86400000}}
"""


def test_a_policy_limits_the_configs_of_a_service(tmp_path: Path) -> None:
    topic = "topic: a\nconfig: {redpanda.remote.read: true}\nclusters: [cloud]\n"
    (spec,) = load(tmp_path, topic, SERVICE).topics_for("cloud")
    assert spec.config == {"redpanda.remote.read": "true"}
    topic = topic.replace("{redpanda.remote.read: true}", "")
    topic += "  redpanda.remote.read: yes\n"
    lines = topic.replace("clusters: [cloud]\n", "") + "clusters: [cloud]\n"
    assert refuse(tmp_path, lines, SERVICE) == ["3 policy-config-value"]
    lines = lines.replace("redpanda.remote.read: yes", "confluent.tier.local.hotset.ms: 86400001")
    found = ["3 policy-config", "3 policy-config-value"]
    assert sorted(refuse(tmp_path, lines, SERVICE)) == found
    assert sorted(refuse(tmp_path, lines.replace("86400001", "2d"), SERVICE)) == found
    assert sorted(refuse(tmp_path, lines.replace("86400001", "-1"), SERVICE)) == found
    assert refuse(tmp_path, lines.replace("86400001", "86400000"), SERVICE) == ["3 policy-config"]


@pytest.mark.parametrize(
    ("right", "wrong", "shown"),
    [
        ("redpanda.*]", "redpnada.*]", "8:31: no topic config is called 'redpnada.*'; "),
        ("{redpanda.remote.read: [", "{redpanda.raed: [", "10:34: Kafka 4.4 has no topic config "),
        ("max: 86400000", "max: 1d", "11:56: confluent.tier.local.hotset.ms: max is '1d', not a "),
        ("known_configs: [retention.ms, redpanda.remote.read, ", "known_configs: [", "redpanda.*"),
    ],
)
def test_a_policy_names_only_configs_that_a_service_or_kafka_has(
    tmp_path: Path, right: str, wrong: str, shown: str
) -> None:
    with pytest.raises(SpecError) as refused:
        load(tmp_path, "topic: a\n", SERVICE.replace(right, wrong))
    assert shown in str(refused.value.findings[0])


def test_a_policy_of_the_estate_names_configs_of_a_service_of_one_cluster(tmp_path: Path) -> None:
    policy = "policy: {config: {allow: [redpanda.remote.read]}}\n"
    clusters = OFFERED.replace("[retention.ms]", "[redpanda.remote.read]") + policy
    clusters = clusters.replace("min.insync.replicas: 2", "min.insync.replicas: null")
    topic = "topic: a\noverrides: {cloud: {config: {redpanda.remote.read: true}}}\n"
    assert load(tmp_path, topic, clusters).topics_for("cloud")[0].config


def test_wrong_forms_around_known_configs_are_findings(tmp_path: Path) -> None:
    for text in ("[a]", "{cloud: [a]}", "{cloud: {known_configs: {a: b}}}"):
        clusters = f"version: 1\nclusters: {text}\npolicy: {{config: {{deny: [x.y]}}}}\n"
        assert "3 config-unknown" in refuse(tmp_path, "topic: a\n", clusters)


@pytest.mark.parametrize(
    ("config", "valid"),
    [
        ({"redpanda.remote.read": True}, True),
        ({"write.caching": None}, True),
        ({"redpanda.remote.read": ["x"]}, False),
        ({"retention.msec": 1}, False),
        ({"colour": "red"}, False),
    ],
)
def test_the_schema_knows_configs_of_a_service_and_typos_of_kafkas(
    config: dict[str, object], valid: bool
) -> None:
    document = {"topic": "a", "config": config}
    assert jsonschema.Draft7Validator(build_topic_schema()).is_valid(document) == valid


def test_a_profile_is_checked_where_topics_use_it(tmp_path: Path) -> None:
    clusters = OFFERED.replace("[retention.ms]", "[retention.ms, redpanda.remote.read]")
    clusters = clusters.replace(
        "defaults: {config: {min.insync.replicas: 2}}",
        "profiles: {tiered: {config: {redpanda.remote.read: true}}}",
    )
    topic = "topic: a\nclusters: [cloud]\nprofile: tiered\n---\ntopic: b\nclusters: [own]\n"
    (spec,) = load(tmp_path, topic, clusters).topics_for("cloud")
    assert spec.config == {"redpanda.remote.read": "true"}
    with pytest.raises(SpecError, match="no topic config 'redpanda"):
        load(tmp_path, topic + "profile: tiered\n", clusters)
    load(tmp_path, "topic: c\n", clusters)
    typo = clusters.replace("redpanda.remote.read: true", "redpanda.remote.raed: true")
    with pytest.raises(SpecError, match="raed"):
        load(tmp_path, "topic: c\n", typo)


def test_the_ways_out_of_what_is_not_offered_hold(tmp_path: Path) -> None:
    clusters = OFFERED + "    defaults: {config: {min.insync.replicas: null}}\n"
    topic = (
        "topic: a\nconfig: {retention.ms: 1d, segment.ms: 1h}\n"
        "overrides: {cloud: {config: {segment.ms: null}}}\n"
    )
    (spec,) = load(tmp_path, topic, clusters).topics_for("cloud")
    assert spec.config == {"retention.ms": "86400000"}


def test_no_policy_imports_no_cel(tmp_path: Path) -> None:
    load(tmp_path, "topic: a\n", "version: 1\nclusters: {prod: {policy: {owner: optional}}}\n")
    program = (
        "import sys; from pathlib import Path; from reconciler.api.planning import load_estate\n"
        f"load_estate(Path({str(tmp_path)!r}))\n"
        "assert 'cel_expr_python' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_rules_without_cel_say_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reconciler.policy import expressions

    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    expressions._environment.cache_clear()
    with pytest.raises(SpecError) as refused:
        load(tmp_path, "topic: a\nowner: me\npartitions: 4\n")
    expressions._environment.cache_clear()
    told = said(refused.value.findings)[0]
    assert told.endswith(
        "which is not installed; pip install 'cel-expr-python<0.2,>=0.1.3' [policy-expression]"
    )


def test_the_way_out_of_a_lookahead_is_a_rule_that_holds(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        load(tmp_path, "", "version: 1\npolicy: {name: {pattern: '(?!.*[.]tmp)[a-z.]+'}}\n")
    (finding,) = refused.value.findings
    check = finding.way_out.partition("check: ")[2]
    rule = f"version: 1\npolicy:\n  rules:\n    no-tmp: {{check: {check}, message: No.}}\n"
    assert load(tmp_path, "topic: a.b\n", rule).topics == ("a.b",)
    assert refuse(tmp_path, "topic: a.tmp\n", rule) == ["1 policy-rule"]


def test_a_name_of_megabytes_is_held_against_no_pattern(tmp_path: Path) -> None:
    clusters = "version: 1\nowns: [x*]\npolicy: {name: {pattern: x}}\nclusters: {prod: {}}\n"
    assert refuse(tmp_path, f"topic: {'a' * 1_000_000}\n", clusters) == ["1 name-length"]


def test_nothing_written_is_no_policy(tmp_path: Path) -> None:
    estate = load(tmp_path, "topic: a\n", "version: 1\nclusters: {prod: {}}\n")
    assert estate.clusters["prod"].policy == Policy()
    assert estate.clusters["prod"].known_configs is None


DOCS = Path(__file__).parents[3] / "docs"
GUIDE = "".join(
    (DOCS / page).read_text(encoding="utf-8")
    for page in ("how-to/write-a-policy.md", "reference/policy.md")
)
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_guide_are_read_as_they_stand(example: str, tmp_path: Path) -> None:
    estate = load(tmp_path, "", f"version: 1\n{example}")
    assert [finding.rule for finding in estate.findings] == ["estate-empty"]


def test_the_guide_names_every_fact() -> None:
    assert len(EXAMPLES) == 10
    missing = [name for name in FACTS_OF_CHANGES if f"`{name}`" not in GUIDE]
    assert missing == []


def find_example(rule: str) -> str:
    (example,) = (example for example in EXAMPLES if f"  {rule}:" in example)
    return f"version: 1\n{example}"


@pytest.mark.parametrize("command", ["topics", ".", "../estate/topics", "absolute"])
def test_the_guides_rule_on_files_takes_no_file_of_a_like_name(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate = tmp_path / "estate" / "topics"
    for directory in ("evil", "topics"):
        (estate / directory).mkdir(parents=True)
    (estate / "clusters.yaml").write_text(find_example("teams-keep-to-their-files"))
    for number, file in enumerate(
        ("payments", "evil/payments", "topics/payments", "evil-payments", "Payments")
    ):
        topic = f"topic: t{number}\nowner: payments\npartitions: 3\n"
        (estate / f"{file}.yaml").write_text(topic)
    monkeypatch.chdir(estate if command == "." else estate.parent)
    findings = load_estate(estate if command == "absolute" else Path(command)).findings
    broken = {f.what.split()[0] for f in findings if "rule teams-keep-to-their-files" in f.what}
    assert broken == {"'t1'", "'t2'", "'t3'", "'t4'"}


def test_the_guides_rule_on_deletions_holds_for_a_topic_that_nobody_wrote(tmp_path: Path) -> None:
    clusters = find_example("platform-deletes")
    gone = "topic: theirs\nowner: payments-team\nstate: absent\n"
    assert refuse(tmp_path, gone, clusters) == ["3 policy-rule"]
    load(tmp_path, gone.replace("payments", "platform"), clusters)
    load(tmp_path, gone.replace("absent", "present"), clusters)


DELETIONS = """\
version: 1
owns: [shop.*]
policy:
  name: {pattern: 'shop[.][a-z]+'}
  owner: required
  partitions: {min: 2, max: 12}
  config: {require: [retention.ms], ranges: {segment.ms: {max: 1h}}}
  per_owner: {topics: 1}
  rules:
    own: {check: "spec.name.startsWith('shop.' + spec.owner)", message: Not yours.}
    few: {check: spec.partitions <= 12, message: Too many.}
    kept: {check: "spec.config['retention.ms'] > 1 * hour", message: Too short.}
clusters: {prod: {known_configs: [retention.ms]}}
"""


def test_a_topic_that_is_to_go_follows_the_rules_on_who_may_write_what(tmp_path: Path) -> None:
    gone = "topic: {name}\nowner: {owner}\nstate: absent\nconfig: {{segment.ms: 2h}}\n"
    own = "---\n".join(
        [
            gone.format(name="shop.orders", owner="orders"),
            "topic: shop.ordersnew\nowner: orders\npartitions: 3\nconfig: {retention.ms: 1d}\n",
        ]
    )
    load(tmp_path, own, DELETIONS)
    assert refuse(tmp_path, gone.format(name="shop.money", owner="orders"), DELETIONS) == [
        "1 policy-rule"
    ]
    assert refuse(tmp_path, gone.format(name="theirs", owner="theirs"), DELETIONS) == [
        "1 policy-name",
        "1 policy-rule",
        "1 topic-not-owned",
    ]
    assert refuse(tmp_path, "topic: shop.money\nstate: absent\n", DELETIONS) == [
        "1 policy-owner",
        "1 policy-rule-open",
    ]


def test_the_example_estate_breaks_its_policy_where_a_topic_asks_for_too_much(
    tmp_path: Path,
) -> None:
    clusters = (Path(__file__).parents[3] / "topics" / "clusters.yaml").read_text()
    topic = "topic: Orders\nclusters: [prod-eu]\npartitions: 49\nreplication_factor: 2\n"
    assert refuse(tmp_path, topic, clusters) == [
        "1 policy-description",
        "1 policy-name",
        "1 policy-owner",
        "3 policy-partitions",
        "4 policy-replication",
    ]


QUOTAS = """\
version: 1
policy: {per_owner: {topics: 2, partitions: 10}}
clusters:
  prod: {}
  lab: {policy: {per_owner: {partitions: 5, replicas: 30}, exempt: {quota-per-owner: [old.*]}}}
"""
OWNED = "".join(
    f"---\ntopic: {name}\nowner: me\npartitions: {number}\n"
    for name, number in (("shop.orders", 5), ("old.refunds", 4))
)


def test_a_quota_counts_every_topic_that_the_files_ask_for_on_a_cluster(tmp_path: Path) -> None:
    estate = load(tmp_path, OWNED, QUOTAS)
    prod, lab = (estate.clusters[name].policy.per_owner for name in ("prod", "lab"))
    assert prod == {"topics": 2, "partitions": 10}
    assert lab == {"topics": 2, "partitions": 5, "replicas": 30}
    third = f"{OWNED}---\ntopic: third\nowner: me\npartitions: 2\n"
    assert refuse(tmp_path, third, QUOTAS) == [
        "4 quota-per-owner",
        "4 quota-per-owner",
        "10 quota-per-owner",
    ]
    only_lab = f"{third}clusters: [lab]\n"
    load(tmp_path, only_lab, QUOTAS.replace("partitions: 5", "partitions: 7"))


def test_a_plan_of_one_topic_is_refused_for_the_quota_that_all_topics_exceed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = OWNED.replace("partitions: 4", "partitions: 6")
    (tmp_path / "clusters.yaml").write_text(QUOTAS)
    (tmp_path / "topics.yaml").write_text(more)
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text('{"format_version": "1.0", "brokers": [{"id": 1}], "topics": []}')
    options = ["--cluster", "prod", "--topic", "shop.orders", "--against", str(snapshot)]
    assert run(["plan", str(tmp_path), *options]) == 1
    assert "ask for 11 partitions on prod, 1 more than the 10" in capsys.readouterr().err
