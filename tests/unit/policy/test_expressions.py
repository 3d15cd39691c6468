"""Expressions in CEL: what is refused before it is asked, and what gives no answer."""

from __future__ import annotations

import pytest
from shorthand import CATALOGUE, HERE, spec

from reconciler.model.cluster import AcceptedChange
from reconciler.policy.expressions import Expression, ExpressionError, bind_facts
from reconciler.policy.facts import (
    FACTS_OF_CHANGES,
    FACTS_OF_SPECS,
    PolicyCluster,
    state_spec_facts,
)
from reconciler.policy.policy import Subject

FACTS = state_spec_facts(
    spec(
        partitions=6,
        owner="orders-team",
        config={"retention.ms": "604800000", "cleanup.policy": "compact,delete"},
        acknowledge=frozenset({"ordering"}),
        accepts=(AcceptedChange("data-loss", "config.retention.ms", "2", "1", HERE),),
    ),
    PolicyCluster("prod", "4.1"),
    CATALOGUE.interpret,
)


def ask(text: str) -> bool:
    return Expression(text, Subject.SPEC).holds(bind_facts(FACTS, Subject.SPEC))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("spec.partitions <= 6", True),
        ("spec.partitions in [3, 12]", False),
        ("spec.replication_factor == null", True),
        ("spec.owner.endsWith('-team')", True),
        ("spec.name.matches('^shop[.]')", True),
        ("spec.config['retention.ms'] == 7 * day", True),
        ("spec.config['retention.ms'] > 1 * week", False),
        ("spec.config['cleanup.policy'].exists(p, p == 'compact')", True),
        ("'segment.ms' in spec.config && spec.config['segment.ms'] < 1 * hour", False),
        ("'ordering' in spec.acknowledge", True),
        ("'data-loss' in spec.acknowledge", True),
        ("'traffic' in spec.acknowledge", False),
        ("cluster.name == 'prod' && cluster.kafka_version == '4.1'", True),
        ("2 * MiB == 2048 * KiB", True),
        ("spec.assigned", False),
    ],
)
def test_it_answers(text: str, answer: bool) -> None:
    assert ask(text) is answer


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("spec.partition < 3", "undeclared reference to 'spec.partition' at character 5"),
        ("spec.partitions <", "Syntax error: mismatched input '<EOF>' at character 18"),
        ("true &&\n  spec.name + 1 == 'x'", "found no matching overload for '_+_' applied to "),
        ("spec.name", "its value is of the type string, not true or false"),
        ("change.actions == []", "undeclared reference to 'change.actions' at character 7"),
        ("'alter_config' in change.actions", "change.actions never holds 'alter_config'"),
        ("'\ud800' == ''", "it contains half of a character"),
        ("(" * 900, "Expression recursion limit exceeded. limit: 32"),
        ("1" + "+1" * 900 + " == 3", "Exceeded max recursion depth of 32 when parsing."),
    ],
)
def test_what_means_nothing_is_refused_before_it_is_asked(text: str, what: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        Expression(text, Subject.SPEC)
    assert refused.value.what.startswith(what)


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("spec.partition < 3", "did you mean spec.partitions?"),
        ("change.actions == []", "write on: change next to it"),
        ("zebra == 3", "fix the expression"),
    ],
)
def test_what_was_meant_is_said_where_that_can_be_told(text: str, way_out: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        Expression(text, Subject.SPEC)
    assert refused.value.way_out == way_out


def test_a_place_in_a_later_line_is_told_with_its_line() -> None:
    with pytest.raises(ExpressionError, match="at line 2, character 3"):
        Expression("true &&\n  zzz", Subject.SPEC)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("spec.config['segment.ms'] < 3", 'Key not found in map : "segment.ms"'),
        ("spec.replication_factor < 3", "No matching overloads found : _<_(null_type, int64)"),
        ("1 / 0 == 1", "divide by zero"),
        ("spec.owner.matches('(')", "invalid regular expression: missing ): ("),
        ("spec.partitions", "its value is of the type int, not true or false"),
        ("has(spec.owner)", "its value is of the type string, not true or false"),
    ],
)
def test_what_gives_no_answer_says_so(text: str, what: str) -> None:
    with pytest.raises(ExpressionError) as open_question:
        ask(text)
    assert open_question.value.what == what


def test_an_expression_cannot_take_for_ever() -> None:
    nine = "[1,2,3,4,5,6,7,8,9].all(a, "
    with pytest.raises(ExpressionError, match="Iteration budget exceeded"):
        ask(nine * 9 + "true" + ")" * 9)
    assert not ask(f"'{'a' * 1_000}b'.matches('(a+)+$')")


def test_changes_know_all_that_specs_know() -> None:
    assert FACTS.keys() == FACTS_OF_SPECS.keys()
    assert FACTS_OF_SPECS.items() < FACTS_OF_CHANGES.items()
