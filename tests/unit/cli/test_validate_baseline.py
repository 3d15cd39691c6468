"""policy-baseline.yaml: written, kept, shrunk, and what `validate` says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from formats import load_validator
from yamlcore import CCoreLoader

from reconciler.api.planning import load_estate
from reconciler.cli.app import run
from reconciler.errors import Severity, SpecError

CLUSTERS = """\
version: 1
policy:
  name: {pattern: '[a-z.]+'}
  partitions: {max: 48}
  config:
    deny: [segment.*]
    ranges: {retention.ms: {max: 30d}}
    values: {cleanup.policy: [delete]}
  per_owner: {partitions: 100}
clusters:
  prod: {}
  staging: {policy: {partitions: {max: 60}}}
"""
OLD = """\
topic: Old.orders
owner: orders-team
partitions: 60
config: {retention.ms: 60d, cleanup.policy: [compact, delete], segment.ms: 2h}
overrides: {staging: {partitions: 70}}
---
topic: new
owner: orders-team
partitions: 48
"""
WRITTEN = """\
owner: orders-team
rule: quota-per-owner
limit: partitions
value: 108
clusters: [prod]
reason: ""
---
owner: orders-team
rule: quota-per-owner
limit: partitions
value: 118
clusters: [staging]
reason: ""
"""


@pytest.fixture
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an estate with a topic that breaks its policy in every way."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    root = tmp_path / "topics"
    root.mkdir()
    (root / "clusters.yaml").write_text(CLUSTERS)
    (root / "a.yaml").write_text(OLD)
    return root


@pytest.fixture
def baseline(estate: Path) -> Path:
    """Return the baseline of that estate, as it is written first."""
    assert run(["validate", "--write-baseline"]) == 0
    return estate / "policy-baseline.yaml"


def explain(baseline: Path, reason: str = "older than the policy") -> None:
    """Fill in the reasons."""
    baseline.write_text(baseline.read_text().replace('reason: ""', f"reason: {reason}"))


def findings(estate: Path) -> dict[str, list[str]]:
    """Return what is said of the estate, by rule."""
    said: dict[str, list[str]] = {}
    for finding in load_estate(estate).findings:
        said.setdefault(finding.rule, []).append(finding.what)
    return said


def test_everything_that_breaks_the_policy_is_written_with_its_value(baseline: Path) -> None:
    text = baseline.read_text()
    assert text.endswith(WRITTEN)
    entries = list(yaml.load_all(text, CCoreLoader))
    listed = [(e["rule"], e.get("limit"), e.get("value"), e.get("clusters")) for e in entries]
    assert listed == [
        ("policy-config", "segment.ms", "2h", None),
        ("policy-config-value", "cleanup.policy", "compact,delete", None),
        ("policy-config-value", "retention.ms", "60d", None),
        ("policy-name", None, None, None),
        ("policy-partitions", None, 60, ["prod"]),
        ("policy-partitions", None, 70, ["staging"]),
        ("quota-per-owner", "partitions", 108, ["prod"]),
        ("quota-per-owner", "partitions", 118, ["staging"]),
    ]
    for entry in entries:
        load_validator("baseline").validate(entry)


def test_validate_never_adds_an_entry(estate: Path) -> None:
    assert run(["validate"]) == 1
    assert not (estate / "policy-baseline.yaml").exists()


def test_what_is_exempt_is_counted_rule_by_rule(
    baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    explain(baseline)
    capsys.readouterr()
    assert run(["validate"]) == 0
    assert capsys.readouterr().out == (
        "topics/policy-baseline.yaml:3:1: note: 1 topic is exempt from policy-config: "
        "Old.orders (segment.ms) [policy-baseline]\n"
        "topics/policy-baseline.yaml:9:1: note: 1 topic is exempt from policy-config-value: "
        "Old.orders (cleanup.policy), Old.orders (retention.ms) [policy-baseline]\n"
        "topics/policy-baseline.yaml:21:1: note: 1 topic is exempt from policy-name: "
        "Old.orders [policy-baseline]\n"
        "topics/policy-baseline.yaml:25:1: note: 1 topic is exempt from policy-partitions: "
        "Old.orders [policy-baseline]\n"
        "topics/policy-baseline.yaml:37:1: note: 1 owner is exempt from quota-per-owner: "
        "orders-team (partitions) [policy-baseline]\n\n"
        "2 topics in 1 file, 2 clusters: all good\n"
    )


def test_reasons_are_asked_for_and_kept(
    estate: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert findings(estate)["policy-baseline-reason"] == [
        "6 exemptions without a reason: Old.orders (policy-config segment.ms), Old.orders "
        "(policy-config-value cleanup.policy), Old.orders (policy-config-value retention.ms), "
        "Old.orders (policy-name), Old.orders (policy-partitions) and 1 more"
    ]
    explain(baseline, "'see #12: gone in March'")
    (estate / "a.yaml").write_text(OLD.replace("partitions: 60", "partitions: 61"))
    capsys.readouterr()
    assert run(["validate", "--write-baseline"]) == 0
    assert capsys.readouterr().err == (
        "topics/policy-baseline.yaml: 8 exemptions, 2 added, 2 removed\n"
    )
    assert "policy-baseline-reason" not in findings(estate)
    assert baseline.read_text().count('reason: "see #12: gone in March"') == 8


def test_what_is_written_again_is_the_same(baseline: Path) -> None:
    before = baseline.read_text()
    assert run(["validate", "--write-baseline"]) == 0
    assert baseline.read_text() == before


def test_what_gets_worse_is_refused(estate: Path, baseline: Path) -> None:
    (estate / "a.yaml").write_text(
        OLD.replace("partitions: 60", "partitions: 61").replace("60d", "61d")
    )
    with pytest.raises(SpecError) as refused:
        load_estate(estate)
    said = [finding.what for finding in refused.value.findings]
    assert len(said) == 3
    assert said[0].startswith("partitions 61 exceeds 48")
    assert said[0].endswith("(the baseline exempts 60)")
    assert said[1].startswith("the topics of 'orders-team' ask for 109 partitions on prod, 9 more")
    assert said[1].endswith("(the baseline exempts 108)")
    assert said[2].startswith("retention.ms 61d (5270400000) exceeds 30d")
    assert said[2].endswith("(the baseline exempts 60d (5184000000))")


def test_a_new_topic_is_not_exempt(estate: Path, baseline: Path) -> None:
    (estate / "b.yaml").write_text("topic: Another\npartitions: 60\n")
    with pytest.raises(SpecError) as refused:
        load_estate(estate)
    rules = [finding.rule for finding in refused.value.findings]
    assert rules == ["policy-name", "policy-partitions"]


def test_a_topic_is_exempt_only_where_it_was(estate: Path, baseline: Path) -> None:
    text = (estate / "clusters.yaml").read_text().replace("{max: 60}", "{max: 10}")
    (estate / "clusters.yaml").write_text(text)
    with pytest.raises(SpecError) as refused:
        load_estate(estate)
    assert [f.what.partition(" exceeds")[0] for f in refused.value.findings] == ["partitions 48"]


def test_the_baseline_shrinks_by_itself(estate: Path, baseline: Path) -> None:
    explain(baseline)
    better = OLD.replace("Old.orders", "old.orders").replace("partitions: 70", "partitions: 50")
    (estate / "a.yaml").write_text(better)
    with pytest.raises(SpecError):  # another topic, so none of it is exempt
        load_estate(estate)
    (estate / "a.yaml").write_text(
        OLD.replace("partitions: 70", "partitions: 50")
        .replace("60d", "40d")
        .replace(", segment.ms: 2h", "")
    )
    stale = findings(estate)["policy-baseline-stale"]
    assert stale == [
        "entries for policy-config are no longer needed: Old.orders (segment.ms)",
        "entries for policy-config-value exempt more than the specs ask for now: Old.orders "
        "(retention.ms)",
        "entries for policy-partitions are no longer needed: Old.orders",
        "entries for quota-per-owner are no longer needed: orders-team (partitions)",
    ]
    assert run(["validate"]) == 0
    assert run(["validate", "--write-baseline"]) == 0
    assert "policy-baseline-stale" not in findings(estate)
    entries = list(yaml.load_all(baseline.read_text(), CCoreLoader))
    assert [(e["rule"], e.get("value"), e["reason"]) for e in entries] == [
        ("policy-config-value", "compact,delete", "older than the policy"),
        ("policy-config-value", "40d", "older than the policy"),
        ("policy-name", None, "older than the policy"),
        ("policy-partitions", 60, "older than the policy"),
        ("quota-per-owner", 108, "older than the policy"),
    ]


def test_nothing_is_left_of_a_baseline_that_nothing_needs(estate: Path, baseline: Path) -> None:
    (estate / "a.yaml").write_text("topic: a\npartitions: 1\n")
    assert run(["validate", "--write-baseline"]) == 0
    assert list(yaml.load_all(baseline.read_text(), CCoreLoader)) == []
    assert load_estate(estate).findings == ()


def test_an_estate_that_breaks_nothing_gets_no_baseline(estate: Path) -> None:
    (estate / "a.yaml").write_text("topic: a\npartitions: 1\n")
    assert run(["validate", "--write-baseline"]) == 0
    assert not (estate / "policy-baseline.yaml").exists()


def test_nothing_is_written_while_other_errors_hide_what_breaks_the_policy(
    estate: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = baseline.read_text()
    (estate / "a.yaml").write_text(OLD.replace("partitions: 60", "partitions: 0x3c"))
    capsys.readouterr()
    assert run(["validate", "--write-baseline"]) == 1
    said = capsys.readouterr()
    assert "[value-count]" in said.out
    assert said.err == (
        "no baseline was written: first fix these errors, which are not policy errors\n"
    )
    assert baseline.read_text() == before


def test_warnings_and_notes_can_be_exempt_as_well(estate: Path) -> None:
    text = CLUSTERS.replace("  per_owner", "  severity: {policy-name: note}\n  per_owner")
    (estate / "clusters.yaml").write_text(text)
    assert run(["validate", "--write-baseline"]) == 0
    severities = {finding.severity for finding in load_estate(estate).findings}
    assert "policy-name" not in findings(estate)
    assert severities == {Severity.NOTE, Severity.WARNING}


def test_the_sandbox_takes_every_exemption(estate: Path, baseline: Path) -> None:
    assert load_estate(estate).topics_for("sandbox")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("below/policy-baseline.yaml", "move its content into topics/policy-baseline.yaml"),
        ("Policy-Baseline.yml", "move its content into topics/policy-baseline.yaml"),
    ],
)
def test_a_baseline_elsewhere_is_not_overlooked(
    path: str, said: str, estate: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (estate / path).parent.mkdir(exist_ok=True)
    baseline.rename(estate / path)
    assert run(["validate"]) == 1
    assert said in capsys.readouterr().out
