"""What the evaluation of an expression can take: bounded before it is evaluated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from shorthand import CATALOGUE, spec

from reconciler.errors import Location
from reconciler.policy.cost import ITEM, MOST_STEPS, Cost, Size, any_size, measure
from reconciler.policy.expressions import CostlyExpressionError, Expression
from reconciler.policy.facts import PolicyCluster
from reconciler.policy.policy import PolicyRule, Subject
from reconciler.policy.rules import Judge

THERE = Location("topics/clusters.yaml", 12, 14)
EIGHT = "+".join("a" * 8)
DIGITS = "[1,2,3,4,5,6,7,8,9]"


def grow(start: str, step: str, times: int) -> str:
    return f"[{start}]" + f".map(a, {step})" * times


MEASURE = """import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)"""
"""Start a command from a small process: a child counts the memory of what forked it as its own."""

HOSTILE = (
    f"{grow(chr(39) + 'a' + chr(39), EIGHT, 9)}[0].size() > 0",  # texts
    f"{grow('[1]', EIGHT, 7)}[0].size() > 0",  # lists
    f"{grow('b' + chr(39) + 'a' + chr(39), EIGHT, 9)}[0].size() > 0",  # bytes
    f"{grow('1', '[a,a,a,a,a,a,a,a]', 9)}.all(a, a == a)",  # the same list in many places
    f"{grow('1', '{1:a,2:a,3:a,4:a,5:a,6:a}', 9)}.all(a, a == a)",  # and the same map
    f"{grow('spec.description', EIGHT, 6)} == []",  # a fact
    f"{grow('true ? spec.name : ' + chr(39) * 2, EIGHT, 9)} == []",
    f"{grow('dyn(spec.name)', EIGHT, 9)} == []",
    f"{grow('string(spec.partitions)', f'string({EIGHT})', 9)} == []",
    f"{grow(chr(39) + 'a' + chr(39), f'({EIGHT}).size() > 9 ? {EIGHT} : {EIGHT}', 8)} == []",
    f"{grow(chr(39) + 'a' + chr(39), '[a].filter(b, true).map(b, b+b+b+b+b)[0]', 14)} == []",
    f"{DIGITS}.map(a, {DIGITS}.map(b, {DIGITS}.map(c, {DIGITS}.map(d, spec.config)))) == []",
    f"{DIGITS}.all(a, " * 4 + "(spec.name + spec.description).size() > 3" + ")" * 4,
    f"{DIGITS}.all(a, " * 4 + r"spec.name.matches('(x{900}){1}y{900}') || true" + ")" * 4,
    f"{DIGITS}.all(a, " * 2 + "spec.name.matches('^' + spec.owner)" + ")" * 2,
    f"{grow('1', 'google.protobuf.ListValue{values: [a,a,a,a,a,a,a,a]}', 8)}.all(a, true)",
    f"{grow('1', 'google.protobuf.Struct{fields: {string(1): a, string(2): a}}', 26)} == []",
    f"{grow(chr(39) + 'a' * 8 + chr(39), EIGHT, 5)}.all(a, {DIGITS}.all(b, {DIGITS}.all(c, "
    f"{DIGITS}.all(d, {{'x': true}}[a] || true))))",  # each error quotes the key
    r"spec.name.matches('\\pL{500}')" + r" || spec.name.matches('\\pN\\pL{100}')" * 3,
)
USUAL = (
    "spec.partitions <= 12",
    "'cleanup.policy' in spec.config && 'compact' in spec.config['cleanup.policy']",
    "spec.file.endsWith('/' + spec.owner + '.yaml')",
    "spec.name.matches('^' + spec.owner + '[.]')",
    "spec.name.matches('^(orders|payments)[.][a-z0-9-]+([.][a-z0-9-]+){0,3}$')",
    "spec.name.matches('^[a-z0-9._-]{1,249}$')",
    "spec.config.all(k, k.startsWith('retention.') || k in ['flush.ms', 'segment.ms'])",
    "spec.config.map(k, k + '=x').exists(x, x.matches('^[a-z.]+=x$'))",
    "spec.config.all(k, spec.config.all(j, j == k || !j.startsWith(k)))",
    "spec.acknowledge.filter(a, a != 'ordering').map(a, 'risk ' + a).size() <= 3",
    "change.after.config.all(k, !(k in change.config_keys) || k.contains('ms'))",
    "change.after.partitions <= 2 * change.before.partitions",
    "spec.config.all(k, k in change.config_keys || spec.config[k] == change.after.config[k])",
    "spec.config.all(k, spec.config.all(j, j == k || spec.config[j] != spec.config[k]))",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_can_take_too_much_is_not_evaluated(text: str) -> None:
    with pytest.raises(CostlyExpressionError, match=r"^can (fill|take) .*, more than "):
        Expression(text, Subject.SPEC)


@pytest.mark.parametrize("text", USUAL)
def test_a_usual_rule_is(text: str) -> None:
    Expression(text, Subject.CHANGE)


def test_a_finding_names_the_rule_and_the_way_out() -> None:
    rule = PolicyRule("big", HOSTILE[0], "Ask.", THERE)
    judge = Judge([rule], PolicyCluster("prod"), CATALOGUE.interpret)
    assert [str(finding) for finding in judge.findings] == [
        "topics/clusters.yaml:12:14: check of the rule big can fill 51.4 GiB of memory, more than "
        "64.0 MiB; nest fewer comprehensions, join fewer texts and lists in them, and match "
        "patterns that are constants [policy-expression-cost]"
    ]
    assert not list(judge.judge_spec(spec()))


def test_a_rule_that_only_large_facts_make_costly_gives_no_answer_for_them() -> None:
    """The costs above are those for the usual size of facts; nothing is evaluated for others."""
    check = "spec.config.all(k, spec.config.all(j, j == k || !j.startsWith(k)))"
    rule = PolicyRule("pairs", check, "Ask.", THERE)
    judge = Judge([rule], PolicyCluster("prod"), CATALOGUE.interpret)
    small, large = ({"retention.ms": "1", "x": "x" * number} for number in (1_000, 100_000))
    assert not list(judge.judge_spec(spec(config=small)))
    (breach,) = judge.judge_spec(spec(config=large))
    assert breach.finding.rule == "policy-rule-open"
    assert "gives no answer for 'shop.orders': can take " in breach.finding.what


def test_an_error_of_the_library_quotes_no_long_key() -> None:
    check = f"{grow(chr(39) + 'a' * 8 + chr(39), EIGHT, 5)}.all(a, {{'x': true}}[a])"
    rule = PolicyRule("long", check, "Ask.", THERE)
    (breach,) = Judge([rule], PolicyCluster("prod"), CATALOGUE.interpret).judge_spec(spec())
    assert 'Key not found in map : "aaaa' in breach.finding.what
    assert len(breach.finding.what) < 700


def test_facts_have_the_size_of_their_parts() -> None:
    assert measure(None) == measure(7) == Size(ITEM)
    assert measure("ab") == Size(ITEM + 2)
    assert measure("é").whole == ITEM + 2
    assert measure(["ab", "c"]) == Size(3 * ITEM + 3, 2, ITEM + 2)
    assert measure({"k": ["v"]}) == Size(4 * ITEM + 2, 1, 2 * ITEM + 1)


def test_a_limit_is_named_only_where_it_is_exceeded() -> None:
    assert Cost(64 << 20, MOST_STEPS).explain_excess() is None
    assert Cost((64 << 20) + 1).explain_excess() == (
        "can fill 64.0 MiB of memory, more than 64.0 MiB"
    )
    assert Cost(0, MOST_STEPS + 1).explain_excess() == (
        "can take 4,000,001 steps, more than 4,000,000"
    )
    assert Cost(10**40).explain_excess() == "can fill 1,024.0 TiB of memory, more than 64.0 MiB"


@pytest.mark.parametrize("check", HOSTILE[:2])
def test_the_command_stays_small(check: str, tmp_path: Path) -> None:
    """Without the bound, its memory is 660 and 370 MiB."""
    clusters = {
        "version": 1,
        "clusters": {"prod": {}},
        "policy": {"rules": {"big": {"check": check, "message": "Ask."}}},
    }
    (tmp_path / "clusters.yaml").write_text(json.dumps(clusters))
    (tmp_path / "a.yaml").write_text("topic: a\npartitions: 1\nreplication_factor: 1\n")
    command = (sys.executable, "-c", "from reconciler.cli import main; main()")
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, *command, "validate", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "[policy-expression-cost]" in run.stdout
    assert int(run.stderr) < 300 << 10  # units: KiB


def test_a_value_of_unknown_type_can_be_a_list() -> None:
    assert any_size(640) == Size(640, 10, 640)
