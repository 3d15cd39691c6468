"""A notice: what people must know of an apply or of a check for drift, in any chat or pager.

It has names, counts, results, reasons and rules. A plan without anything to do, and an apply that
is done, have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from reconciler.codehost.host import Links
from reconciler.errors import Finding
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.model.plan import Plan
from reconciler.run.ending import Ended, Ending
from reconciler.show.view import PlanView, view_plan

About = Literal["apply", "drift"]

SAID_NOTHING = "The run printed nothing; see its log."

_WORST_FIRST = (
    OutcomeKind.UNKNOWN,
    OutcomeKind.FAILED,
    OutcomeKind.HALF_DONE,
    OutcomeKind.REFUSED,
    OutcomeKind.NOT_ATTEMPTED,
    OutcomeKind.IN_FLIGHT,
    OutcomeKind.WAITING,
)


@dataclass(frozen=True, slots=True)
class TopicNotice:
    """A topic and its result: an outcome of apply, or what a plan would do.

    `topic` is empty where a plan is refused as a whole.
    """

    topic: str
    result: str
    reason: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened on a cluster. `counts` are numbers of topics by result."""

    about: About
    cluster: str
    result: str
    reason: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    topics: tuple[TopicNotice, ...] = ()
    fingerprint: str | None = None
    links: Links = field(default_factory=Links)

    @property
    def title(self) -> str:
        """Return the subject in one line."""
        return f"Kafka {self.about} on {self.cluster}: {self.result}"


def notice_apply(
    cluster: str, plan: Plan | None, ending: Ending | None, errors: str, links: Links
) -> Notice | None:
    """Return the notice of an apply, None if everything is as planned.

    `ending` is None if apply did not begin. Then the plan was refused, was not the approved one, or
    could not be made: `errors` says why.
    """
    view = view_plan(plan) if plan else None
    if ending is None:
        ending = end_without_apply(view, errors)
    if not ending.exit_code:
        return None
    worst = sorted(
        (outcome for outcome in ending.outcomes if not outcome.kind.is_done),
        key=lambda outcome: (_WORST_FIRST.index(outcome.kind), outcome.topic),
    )
    topics = tuple(map(_notice_outcome, worst))
    reason = ending.error or ""
    if ending.ended is Ended.REFUSED and view:
        # The error lists the same refusals as one text.
        topics, reason = tuple(_list_refused(view)), ""
    return Notice(
        "apply",
        cluster,
        str(ending.ended),
        reason,
        Counter(str(outcome.kind) for outcome in ending.outcomes) or _count_results(topics),
        topics,
        view.fingerprint if view else None,
        links,
    )


def end_without_apply(view: PlanView | None, errors: str) -> Ending:
    """Return how an apply ended that did not begin: the plan, or its absence, says why."""
    if view is None:
        return Ending(Ended.ERROR, error=errors.strip() or SAID_NOTHING)
    if view.refusals or view.refused:
        return Ending(Ended.REFUSED)
    if view.to_do:
        why = "no merged request showed this plan, or apply could not start; see the log of the run"
        return Ending(Ended.NOT_APPROVED, error=why)
    return Ending(Ended.NOTHING_TO_DO)


def notice_drift(cluster: str, plan: Plan | None, errors: str, links: Links) -> Notice | None:
    """Return the notice of a check for drift, None if the cluster is as specified."""
    if plan is None:
        reason = errors.strip() or SAID_NOTHING
        return Notice("drift", cluster, "could not be checked", reason, links=links)
    view = view_plan(plan)
    if not view.to_do:
        return None
    changes = (TopicNotice(t.name, "differs", t.words) for t in view.changed if not t.refusals)
    topics = (*_list_refused(view), *changes)
    counts = {str(verb): number for verb, number in view.counts.items() if number}
    counts |= {"refused": len(view.refused)} if view.refused else {}
    words = ", ".join(view.to_do)
    return Notice("drift", cluster, words, "", counts, topics, view.fingerprint, links)


def _list_refused(view: PlanView) -> Iterator[TopicNotice]:
    """Yield every refusal of a plan: those of the entire plan first."""
    for refusal in view.refusals:
        yield _notice_refusal("", refusal)
    for topic in view.refused:
        for refusal in topic.refusals:
            yield _notice_refusal(topic.name, refusal)


def _notice_refusal(topic: str, refusal: Finding) -> TopicNotice:
    way_out = f"; {refusal.way_out}" if refusal.way_out else ""
    refused = str(OutcomeKind.REFUSED)
    return TopicNotice(topic, refused, f"{refusal.what}{way_out}", refusal.rule)


def _notice_outcome(outcome: Outcome) -> TopicNotice:
    return TopicNotice(outcome.topic, str(outcome.kind), outcome.text, outcome.rule)


def _count_results(topics: tuple[TopicNotice, ...]) -> Mapping[str, int]:
    """Count topics by result: a topic may have several refusals."""
    return Counter(result for _, result in {(one.topic, one.result) for one in topics})
