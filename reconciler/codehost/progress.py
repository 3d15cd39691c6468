"""The progress of a merged request on a cluster: which of its topics are as specified now.

It is computed from the approved plan, which the request showed, and from the present differences
of the cluster. So it is true whatever run made the changes, and whichever of them was killed. The
hidden last line of the comment with the result holds it, for later runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import TypeAdapter

from reconciler.model.cluster import TopicSpec
from reconciler.model.plan import Plan
from reconciler.planfile.approval import pack, unpack
from reconciler.show.fields import Kept, asks_for, is_reached, list_differences

_LINE = re.compile(r"<!-- reconciler:progress topics=([A-Za-z0-9+/]+=*) -->")


class Present(NamedTuple):
    """A cluster as it is now: the present values where it differs, and the specs that say so."""

    differs: Mapping[str, Mapping[str, str | None]]
    specs: Mapping[str, TopicSpec]


class Progress(NamedTuple):
    """The topics of a request on a cluster.

    `done` are as specified, and `left` are not. Of `replaced`, the specs ask for something else
    than the request, or are gone.
    """

    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of topics of the request."""
        return sum(map(len, self))


_PROGRESS = TypeAdapter(Progress)


def read_present(plan: Plan, specs: Mapping[str, TopicSpec]) -> Present:
    """Read the present state of a cluster from a plan that was just made, and from its specs."""
    return Present(list_differences(plan), specs)


def measure_progress(kept: Kept, present: Present, *, approved: bool) -> Progress:
    """Compare what a request showed with the present state of the cluster.

    If nobody approved that, a topic is done only if nothing of it differs: a night may restore what
    is done, and a later commit of the request may ask for more.
    """
    done, left, replaced = [], [], []
    for topic in kept.topics:
        changes = kept.changes.get(topic, {})
        spec = present.specs.get(topic)
        if spec is None or not asks_for(spec, changes):
            replaced.append(topic)
        elif is_reached(changes if approved else {}, present.differs.get(topic, {})):
            done.append(topic)
        else:
            left.append(topic)
    return Progress(tuple(done), tuple(left), tuple(replaced))


def write_progress(progress: Progress, limit: int) -> str:
    """Write the hidden line; empty if it would need more than `limit` characters."""
    packed = pack(_PROGRESS.dump_json(progress))
    if not packed or len(packed) > limit:
        return ""
    return f"<!-- reconciler:progress topics={packed} -->"


def read_progress(body: str) -> Progress | None:
    """Read the hidden last line of a comment; None if it has none, or a malformed one."""
    found = _LINE.fullmatch(body.rstrip().rpartition("\n")[2])
    try:
        return _PROGRESS.validate_json(unpack(found[1])) if found else None
    except ValueError:
        return None
