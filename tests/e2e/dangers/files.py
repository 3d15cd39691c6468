"""Plan files that are not what they were"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dangers.stage import Stage


def _apply_edited(stage: Stage, edit: Callable[[dict[str, Any]], None]) -> None:
    """Save a plan, have its JSON edited, and apply it."""
    stage.wish("orders")
    stage.save()
    path = stage.directory / "plan.json"
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    stage.apply_saved()


def tampered(stage: Stage) -> None:
    """A replica list changed in a saved plan"""

    def edit(document: dict[str, Any]) -> None:
        document["resource_changes"][0]["change"]["after"]["assignment"][0].reverse()

    _apply_edited(stage, edit)


def hidden_refusal(stage: Stage) -> None:
    """A refusal taken out of a saved plan"""
    stage.have("clicks")
    stage.wish("clicks", partitions=3)

    def edit(document: dict[str, Any]) -> None:
        for resource in document["resource_changes"]:
            resource["refusals"] = []

    _apply_edited(stage, edit)


def newer(stage: Stage) -> None:
    """A plan of a newer format"""

    def edit(document: dict[str, Any]) -> None:
        document["format_version"] = "3.0"

    _apply_edited(stage, edit)


def cut_off(stage: Stage) -> None:
    """A plan file that was cut off"""
    stage.wish("orders")
    stage.save()
    path = stage.directory / "plan.json"
    path.write_text(path.read_text()[:1])
    stage.apply_saved()


DANGERS = (tampered, hidden_refusal, newer, cut_off)
