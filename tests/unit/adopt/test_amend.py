"""Documents edited in place: everything that does not change stays, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.adopt.amend import (
    NotAmendableError,
    amend_document,
    append_documents,
    delete_key,
    edit_config,
    set_key,
)

TEXT = """\
# First.
topic: a   # the first
partitions: 3   # enough

# How long?
config:
  retention.ms: 7d   # a week
  # Twice a day.
  flush.ms: 12h

# Who is it?
owner: 'us'
--- # the second
topic:   b
"""


def amend(edit: Any, line: int = 2) -> str:
    return amend_document(TEXT, line, edit)


def test_a_changed_value_keeps_its_comment() -> None:
    changed = amend(lambda table: set_key(table, "partitions", 6))
    assert changed == TEXT.replace("partitions: 3", "partitions: 6")


def test_a_config_in_the_middle_goes_and_the_comment_of_the_next_stays() -> None:
    changed = amend(lambda table: edit_config(table, "config", {}, {"retention.ms"}))
    assert "retention.ms" not in changed
    assert "config:\n  # Twice a day.\n  flush.ms: 12h\n\n# Who is it?\n" in changed


def test_the_last_config_goes_and_the_comment_of_the_next_key_stays() -> None:
    changed = amend(lambda table: edit_config(table, "config", {}, {"flush.ms"}))
    assert "flush.ms" not in changed
    assert "# Who is it?\nowner: 'us'\n" in changed


def test_a_config_map_that_ends_up_empty_goes_and_comments_stay() -> None:
    changed = amend(lambda table: edit_config(table, "config", {}, {"flush.ms", "retention.ms"}))
    assert "config" not in changed
    assert "# Who is it?\nowner: 'us'\n" in changed


def test_a_new_config_stands_before_the_blank_line_that_ends_the_map() -> None:
    changed = amend(lambda table: edit_config(table, "config", {"segment.ms": "1h"}, set()))
    assert "  flush.ms: 12h\n  segment.ms: 1h\n\n# Who is it?" in changed


def test_only_the_document_of_that_line_changes() -> None:
    changed = amend(lambda table: set_key(table, "partitions", 2), line=14)
    assert changed == TEXT.replace("topic:   b\n", "topic: b\npartitions: 2\n")


def test_a_key_taken_out_leaves_the_rest() -> None:
    changed = amend(lambda table: delete_key(table, "partitions"))
    assert changed == TEXT.replace("partitions: 3   # enough\n", "")


def test_null_is_written_as_a_word() -> None:
    changed = amend(lambda table: set_key(table, "replication_factor", None))
    assert "replication_factor: null\n" in changed


@pytest.mark.parametrize("text", ["{topic: a}\n", "--- {topic: a}\n", "--- !!map\ntopic: a\n"])
def test_what_cannot_be_edited_in_place_is_refused(text: str) -> None:
    with pytest.raises(NotAmendableError):
        amend_document(text, 1, lambda table: set_key(table, "partitions", 1))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", "topic: n\n"),
        ("# Ours.\n", "# Ours.\ntopic: n\n"),
        ("topic: a", "topic: a\n---\ntopic: n\n"),
        ("topic: a\n---\n", "topic: a\n---\ntopic: n\n"),
    ],
)
def test_new_documents_follow_what_is_there(text: str, whole: str) -> None:
    assert append_documents(text, ["topic: n\n"]) == whole


def test_a_line_of_many_colons_does_not_hold_up_an_import() -> None:
    text = f"# a\ntopic: a\npartitions: 3\ndescription: '{':#' * 100_000}'\n"
    changed = amend_document(text, 2, lambda table: set_key(table, "partitions", 6))
    assert changed == text.replace("partitions: 3", "partitions: 6")
