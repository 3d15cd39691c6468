"""Topic names: every rule of the broker, its edge, and what its message says."""

import pytest

from reconciler.errors import Location
from reconciler.model.cluster import INTERNAL_TOPICS
from reconciler.spec.names import check_name, find_collisions

HERE = Location("topics/a.yaml", 3, 8)


@pytest.mark.parametrize(
    "name",
    ["a", "A-1_b.c", "...", "._", "-", "a" * 249, "__consumer_offsets_2", "_schemas", "0"],
)
def test_a_name_that_the_broker_takes_has_no_finding(name: str) -> None:
    assert check_name(name, HERE) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the topic has no name; give it one [name-empty]"),
        (
            ".",
            "a topic cannot be called '.', which names a directory; "
            "choose another name [name-dots]",
        ),
        (
            "..",
            "a topic cannot be called '..', which names a directory; "
            "choose another name [name-dots]",
        ),
        (
            "a" * 250,
            f"topic '{'a' * 59}…' has a name of 250 characters; use at most 249 [name-length]",
        ),
        (
            "orders events",
            "topic 'orders events' has characters that Kafka does not accept: a blank; "
            "use only ASCII letters, digits, '.', '_' and '-' [name-characters]",
        ),
        (
            "größe/n\n",
            "topic 'größe/n\\n' has characters that Kafka does not accept: 'ö', 'ß', '/', "
            "a line end; use only ASCII letters, digits, '.', '_' and '-' [name-characters]",
        ),
        (
            "__consumer_offsets",
            "'__consumer_offsets' holds the offsets of consumer groups; Kafka creates and "
            "configures it by itself; remove it from the specs [name-internal]",
        ),
    ],
)
def test_a_bad_name_has_one_finding_with_the_way_out(name: str, message: str) -> None:
    assert [str(finding) for finding in check_name(name, HERE)] == [f"{HERE}: {message}"]


def test_a_name_can_be_wrong_in_two_ways() -> None:
    rules = [finding.rule for finding in check_name("ö" * 250, HERE)]
    assert rules == ["name-length", "name-characters"]


def test_length_counts_as_java_does() -> None:
    assert "name of 250 characters" in str(check_name("😀" * 125, None)[0])


@pytest.mark.parametrize("name", INTERNAL_TOPICS)
def test_no_internal_name_is_taken(name: str) -> None:
    assert [finding.rule for finding in check_name(name, HERE)] == ["name-internal"]


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        ([], []),
        (["a.b", "a-b", "ab"], []),
        (["a.b", "a.b"], []),
        (["a_b", "a.b"], [("a.b", "a_b")]),
        (["x.y_z", "x_y.z", "c.d", "x.y.z", "c_d"], [("c.d", "c_d"), ("x.y.z", "x.y_z", "x_y.z")]),
    ],
)
def test_names_collide_once_dots_are_underscores(
    names: list[str], groups: list[tuple[str, ...]]
) -> None:
    assert find_collisions(names) == groups
