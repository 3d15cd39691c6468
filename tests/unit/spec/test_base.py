"""Guards of a request and of its base: which are looser, and what holds."""

from __future__ import annotations

import pytest

from reconciler.errors import Severity, SpecError
from reconciler.spec.base import Base, hold_guards
from reconciler.spec.documents import load_clusters
from reconciler.spec.estate import parse_estate

COMMIT = "0123456789ab" + "c" * 28
KEEPS_ALL = "cel: {check: 'true', message: Yes.}"


def base(settings: str, above: str = "") -> Base:
    text = f"version: 1\n{above}\nclusters: {{prod: {{{settings}}}}}\n"
    return Base(COMMIT, load_clusters(text.encode(), "then.yaml"))


def looser(then: str, now: str, *, above: bool = False) -> list[str]:
    """Return what a request from `then` to `now` loosens, of the cluster or of the whole estate."""
    before, after = (base("", one) if above else base(one) for one in (then, now))
    _, found = hold_guards(before, after.entries["prod"])
    assert all(f.rule == "guard-loosened" for f in found)
    assert all(f.severity is Severity.WARNING for f in found)
    return [f.what.removeprefix("the request loosens ").replace(" of prod:", "") for f in found]


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ("guards: {max_changed: 30%}", "guards: {max_changed: 31%}", "max_changed 30% → 31%"),
        ("guards: {max_changed: 30%}", "", "max_changed 30% → no limit"),
        ("", "guards: {max_deletes: 1}", "max_deletes 0 → 1"),
        ("guards: {unused_for: 14d}", "", "unused_for 14d → 7d"),
        ("guards: {from: base}", "guards: {from: request}", "from base → request"),
        ("guards: {from: base}", "", "from base → request"),
    ],
)
def test_a_looser_guard_of_a_plan(then: str, now: str, said: str) -> None:
    assert looser(then, now) == [f"guards.{said}"]
    assert looser(now, then) == []


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ("owns: [shop.*]", "owns: [shop.*, orders.*]", "owns also orders.*"),
        ("owns: [shop.*]", "", "owns shop.* → everything"),
        ("ignore: [connect-*]", "ignore: [connect-a*]", "ignore without connect-*"),
        ("ignore: [connect-*]", "", "ignore without connect-*"),
        (
            "known_configs: [retention.ms]",
            "known_configs: [retention.ms, flush.ms]",
            "known_configs also flush.ms",
        ),
        ("known_configs: [flush.ms]", "", "known_configs flush.ms → everything"),
        ("cluster_id: one", "", "cluster_id one → not set"),
        ("audit_topic: audit", "", "audit_topic audit → not set"),
    ],
)
def test_a_looser_list_or_a_check_that_is_gone(then: str, now: str, said: str) -> None:
    assert looser(then, now) == [said]
    assert looser(now, then) == []


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ("[[staging], [prod]]", "[[prod], [staging]]", "staging"),
        ("[[dev], [staging], [prod]]", "[[staging], [prod, dev]]", "dev"),
        ("[[dev], [staging], [prod]]", "[[dev, staging, prod]]", "dev, staging"),
    ],
)
def test_a_cluster_that_a_merge_reaches_before_others_that_came_first(
    then: str, now: str, said: str
) -> None:
    others = "dev: {}, staging: {}" if "dev" in then + now else "staging: {}"

    def load(stages: str) -> Base:
        text = f"version: 1\nclusters: {{{others}, prod: {{}}}}\nstages: {stages}\n"
        return Base(COMMIT, load_clusters(text.encode(), "then.yaml"))

    _, (found,) = hold_guards(load(then), load(now).entries["prod"])
    assert found.what == f"the request loosens stages of prod: no longer after {said}"
    assert hold_guards(load(now), load(then).entries["prod"])[1] == ()


def test_another_id_or_audit_topic_is_looser_both_ways() -> None:
    assert looser("cluster_id: one", "cluster_id: two") == ["cluster_id one → two"]
    assert looser("audit_topic: b", "audit_topic: a") == ["audit_topic b → a"]


MOVES = "moves: {allow: [drain], rate: 30MiB"
NOON = "{from: '12:00', to: '13:00', zone: UTC}"
NIGHT = "windows: {night: {from: '22:00', to: '06:00', zone: UTC}"


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ("", f"{MOVES}}}", "moves none → drain"),
        (f"{MOVES}}}", "moves: {allow: [drain, assignment], rate: 30MiB}", "allow also assignment"),
        (f"{MOVES}}}", "moves: {allow: [drain], rate: 31MiB}", "rate 30MiB → 31MiB"),
        (f"{MOVES}}}", "moves: {allow: [drain], rate: unlimited}", "rate 30MiB → no limit"),
        (f"{MOVES}}}", f"{MOVES}, at_once: {{cluster: 51}}}}", "at_once.cluster 50 → 51"),
        (f"{MOVES}}}", f"{MOVES}, at_once: {{broker: 6}}}}", "at_once.broker 5 → 6"),
        (f"{MOVES}}}", f"{MOVES}, keep_free: 5%}}", "keep_free 15% → 5%"),
        (f"{MOVES}, max_bytes: 2TiB}}", f"{MOVES}, max_bytes: 3TiB}}", "max_bytes 2TiB → 3TiB"),
        (f"{MOVES}, max_bytes: 2TiB}}", f"{MOVES}}}", "max_bytes 2TiB → no limit"),
        (f"{MOVES}, {NIGHT}}}}}", f"{MOVES}}}", "windows other hours: at any time"),
        (
            f"{MOVES}, {NIGHT}}}}}",
            f"{MOVES}, {NIGHT}, noon: {NOON}}}}}",
            "windows other hours: night, noon",
        ),
    ],
)
def test_looser_limits_of_moves(then: str, now: str, said: str) -> None:
    assert looser(then, now) == [said if said.startswith("moves") else f"moves.{said}"]
    assert looser(now, then) == []


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ("partitions: {max: 48}", "partitions: {max: 60}", "partitions.max 48 → 60"),
        ("partitions: {min: 3}", "", "partitions.min 3 → no limit"),
        ("replication_factor: {min: 3}", "", "replication_factor.min 3 → no limit"),
        ("owner: required", "owner: optional", "owner required → optional"),
        ("description: required", "", "description required → optional"),
        ("name: {pattern: a.*}", "", "name.pattern a.* → removed"),
        ("config: {allow: [flush.ms]}", "", "config.allow flush.ms → everything"),
        (
            "config: {deny: [retention.*]}",
            "config: {deny: [retention.ms]}",
            "config.deny without retention.*",
        ),
        (
            "config: {require: [flush.ms, retention.ms]}",
            "config: {require: [retention.ms]}",
            "config.require without flush.ms",
        ),
        (
            "config: {ranges: {retention.ms: {max: 7d}}}",
            "config: {ranges: {retention.ms: {max: 8d}}}",
            "config.ranges.retention.ms.max 7d → 8d",
        ),
        (
            "config: {values: {compression.type: [zstd]}}",
            "config: {values: {compression.type: [zstd, lz4]}}",
            "config.values.compression.type also lz4",
        ),
        ("per_owner: {topics: 5}", "per_owner: {topics: 50}", "per_owner.topics 5 → 50"),
        ("per_owner: {replicas: 1500}", "", "per_owner.replicas 1,500 → no limit"),
        ("", "exempt: {policy-name: [legacy.*]}", "exempt.policy-name also legacy.*"),
        (f"rules: {{{KEEPS_ALL}}}", "", "rules.cel removed"),
        (
            f"rules: {{{KEEPS_ALL}}}",
            "rules: {cel: {check: 'true', message: Yes., severity: note}}",
            "rules.cel error → note",
        ),
    ],
)
def test_a_looser_policy(then: str, now: str, said: str, *, above: bool) -> None:
    then, now = (f"policy: {{{one}}}" for one in (then, now))
    assert looser(then, now, above=above) == [f"policy.{said}"]
    assert looser(now, then, above=above) == []


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("name: {pattern: a.*}", "name: {pattern: a.b}"),
        (f"rules: {{{KEEPS_ALL}}}", "rules: {cel: {check: 'false', message: Yes.}}"),
        (f"rules: {{{KEEPS_ALL}}}", "rules: {cel: {check: 'true', message: Yes., on: change}}"),
    ],
)
def test_what_cannot_be_decided_counts_as_looser(then: str, now: str) -> None:
    assert len(looser(f"policy: {{{then}}}", f"policy: {{{now}}}")) == 1


def test_words_for_people_are_no_guard() -> None:
    then = f"policy: {{name: {{pattern: a, means: x}}, rules: {{{KEEPS_ALL}}}}}"
    assert looser(then, then.replace("means: x", "means: y").replace("Yes.", "No.")) == []


@pytest.mark.parametrize(
    ("then", "now", "wider"),
    [
        ("shop.*", "shop.orders.*", False),
        ("shop.*", "shop.a", False),
        ("*", "a*b", False),
        ("a*b", "a*", True),
        ("shop.?", "shop.*", True),
        ("shop.?", "shop.a", True),  # undecided
        ("shop.?", "shop.?", False),
        ("x*bc*y", "x[abc]y", True),
    ],
)
def test_a_pattern_that_another_covers_is_not_wider(then: str, now: str, *, wider: bool) -> None:
    assert bool(looser(f"owns: ['{then}']", f"owns: ['{now}']")) is wider


def test_a_guard_is_named_at_its_line_or_at_the_nearest_key() -> None:
    text = """\
version: 1
policy:
  partitions: {max: 60}
clusters:
  prod:
    guards:
      max_changed: 90%
    moves:
      allow: [drain]
      rate: 30MiB
"""
    then = base(
        "guards: {max_changed: 5%, unused_for: 14d}, policy: {partitions: {max: 9},"
        " owner: required}, owns: [a], moves: {allow: [drain], rate: 30MiB, max_bytes: 1TiB}"
    )
    now = load_clusters(text.encode(), "now.yaml")["prod"]
    _, found = hold_guards(then, now)
    lines = {f.what.split()[3]: f.where.line for f in found if f.where}
    assert lines == {
        "guards.max_changed": 7,
        "guards.unused_for": 6,
        "owns": 5,
        "policy.owner": 2,
        "policy.partitions.max": 3,
        "moves.max_bytes": 8,
    }


def test_a_new_cluster_loosens_nothing() -> None:
    now = load_clusters(b"version: 1\nclusters: {new: {guards: {max_deletes: 9}}}", "now.yaml")
    assert hold_guards(base(""), now["new"]) == (now["new"], ())


# guards: {from: base}

STRICT = "guards: {from: base, max_changed: 5%, max_deletes: 0, unused_for: 14d}"


def test_the_base_decides_which_guards_hold() -> None:
    now = base("guards: {max_changed: 50%, max_deletes: 9, from: base}").entries["prod"]
    held, found = hold_guards(base("guards: {max_changed: 5%}"), now)
    assert held == now
    assert {f.way_out for f in found} == {
        "the new value applies once this is merged; review it first"
    }
    held, found = hold_guards(base(STRICT), now)
    assert held.guards == base(STRICT).entries["prod"].guards
    assert all("uses the guard of 0123456789" in f.way_out for f in found)


def test_what_a_request_tightens_holds_at_once() -> None:
    now = base("guards: {max_changed: 1%, max_deletes: 9}, owns: [a.b]").entries["prod"]
    held, _ = hold_guards(base(f"{STRICT}, owns: ['a.*']"), now)
    assert (held.guards.max_changed_percent, held.guards.max_deletes) == (1, 0)
    assert held.owns == ("a.b",)


def test_everything_that_can_be_loosened_is_held() -> None:
    then = base(
        f"{STRICT}, cluster_id: one, audit_topic: audit, owns: [a], ignore: [b],"
        " known_configs: [flush.ms], moves: {allow: [drain], rate: 1MiB, max_bytes: 1TiB},"
        " policy: {name: {pattern: a}, owner: required, partitions: {min: 2, max: 3},"
        " config: {allow: [flush.ms], deny: [retention.*], require: [flush.ms],"
        " ranges: {retention.ms: {max: 7d}}, values: {compression.type: [zstd]}},"
        f" per_owner: {{topics: 1}}, rules: {{{KEEPS_ALL}}}}}"
    ).entries["prod"]
    now = base("policy: {exempt: {policy-name: [b]}}").entries["prod"]
    held, found = hold_guards(Base(COMMIT, {"prod": then}), now)
    assert len(found) == 20
    held_again, still = hold_guards(Base(COMMIT, {"prod": then}), held)
    assert (held_again, still) == (held, ())
    moving = hold_guards(
        base(STRICT), base(f"{STRICT}, moves: {{allow: [drain], rate: 9MiB}}").entries["prod"]
    )
    assert moving[0].moves is None


def test_specs_are_checked_by_the_policy_of_the_base() -> None:
    topics = b"topic: a\npartitions: 60\n"
    clusters = b"version: 1\nclusters: {prod: {policy: {partitions: {max: 99}}}}\n"
    files = {"clusters.yaml": clusters, "a.yaml": topics}
    assert parse_estate(files, "topics").topics == ("a",)
    then = base("guards: {from: base}, policy: {partitions: {max: 48}}")
    with pytest.raises(SpecError) as error:
        parse_estate(files, "topics", then)
    assert {f.rule for f in error.value.findings} == {"policy-partitions", "guard-loosened"}
    assert "partitions 60 exceeds 48, the most that the policy of prod allows" in str(error.value)
    free = Base(COMMIT, base("policy: {partitions: {max: 48}}").entries)
    estate = parse_estate(files, "topics", free)
    assert [f.rule for f in estate.loosened["prod"]] == ["guard-loosened"]
    assert estate.findings == ()


@pytest.mark.parametrize(
    ("then", "now", "rule"),
    [
        ("owns: [b]", "owns: [b, a]", "topic-not-owned"),
        ("ignore: [a]", "", "topic-ignored"),
        ("known_configs: [retention.ms]", "", "config-not-offered"),
        ("", "moves: {allow: [drain], rate: 1MiB}, drain_brokers: [1]", "drain-allowed"),
        ("policy: {per_owner: {partitions: 5}}", "", "quota-per-owner"),
    ],
)
def test_topics_that_only_the_looser_guard_allows_are_errors(
    then: str, now: str, rule: str
) -> None:
    clusters = f"version: 1\nclusters: {{prod: {{{now}}}}}\n".encode()
    topic = b"topic: a\npartitions: 6\nconfig: {flush.ms: 1}\n"
    files = {"clusters.yaml": clusters, "a.yaml": topic}
    parse_estate(files)
    held = base(f"guards: {{from: base}}{', ' if then else ''}{then}")
    with pytest.raises(SpecError, match=rule):
        parse_estate(files, base=held)


def test_an_owner_that_only_the_request_declares_is_unknown_to_a_strict_base() -> None:
    topics = b"topic: a\nowner: new\n"
    then = "version: 1\nowners: [shop]\nclusters: {prod: {guards: {from: base}}}\n"
    held = Base(COMMIT, load_clusters(then.encode(), "then.yaml"))
    for owners, how in (("owners: [shop, new]\n", "also new"), ("", "shop → everything")):
        clusters = f"version: 1\n{owners}clusters: {{prod: {{}}}}\n".encode()
        files = {"clusters.yaml": clusters, "a.yaml": topics}
        assert parse_estate(files).topics == ("a",)
        with pytest.raises(SpecError) as error:
            parse_estate(files, base=held)
        said = {f.rule: f.what for f in error.value.findings}
        assert said["owner-unknown"] == "the owner 'new' is not among the owners of clusters.yaml"
        assert f"the request loosens owners of prod: {how}" in str(error.value)


def test_a_wrong_source_of_guards_is_named() -> None:
    with pytest.raises(SpecError) as error:
        base("guards: {from: main, form: base}")
    said = [f.what for f in error.value.findings]
    assert "unknown key 'form' under clusters.prod.guards" in said
    assert any("from" in one and "main" in one for one in said)
    (way_out,) = (f.way_out for f in error.value.findings if "form" in f.what)
    assert way_out == "did you mean from?"
