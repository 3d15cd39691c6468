"""What is said if consumer groups may be hidden."""

from __future__ import annotations

from reconciler.kafka.groups import note_unseen
from reconciler.kafka.usage import Groups


def test_hidden_groups_are_a_warning_with_the_way_out() -> None:
    found = Groups()
    assert list(note_unseen(found)) == []
    found.miss("consumer groups are not visible", "grant Describe")
    found.miss("another reason", "")
    (note,) = note_unseen(found)
    assert str(note) == "consumer groups are not visible; grant Describe [groups-unseen]"
    assert note.severity == "warning"
