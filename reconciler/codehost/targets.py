"""Which targets of a cluster were accepted, topic by topic: only these does a night restore.

What is merged is not what was approved. The target of a topic is accepted if the request that
brought its present spec

- is done for that topic, by whatever run, or because it was as specified already; or
- has an approved plan that shows the same change, is done on the clusters of earlier stages, and
  nobody keeps its apply from the cluster.

Later steps of a gradual change belong to the approval of its first step. No topic is deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from reconciler.codehost.approvals import find_approved_seal
from reconciler.codehost.comments import find_marked
from reconciler.codehost.host import CodeHost, Note, PullRequest
from reconciler.codehost.progress import Progress, read_progress
from reconciler.codehost.results import mark_result
from reconciler.codehost.seals import select_shown
from reconciler.errors import CodeHostError
from reconciler.model.plan import Plan
from reconciler.planfile.accepted import Accepted
from reconciler.show.fields import Fields, list_deleted, list_fields, unpack_fields
from reconciler.show.gradual import GradualStep
from reconciler.units import count


def judge_targets(
    host: CodeHost, plan: Plan, origins: Mapping[str, str], gradual: Iterable[GradualStep]
) -> Accepted:
    """Return which topics of a plan have an accepted target, and why each of the others waits.

    In: a plan of everything that differs; the commit that brought the present spec of each topic,
    if it is known; the steps of gradual changes in the plan.
    Errors: CodeHostError if the host does not answer.
    """
    changes = list_fields(plan)
    stepping = {(step.topic, step.key) for step in gradual}
    by_commit: defaultdict[str, list[str]] = defaultdict(list)
    for topic in sorted(changes):
        by_commit[origins.get(topic, "")].append(topic)
    waiting: dict[str, str] = {}
    for commit, topics in by_commit.items():
        found = host.list_brought(commit) if commit else ()
        if len(found) == 1:
            judge = _Judge(host, found[0], plan, stepping)
            waiting |= dict(judge.list_waiting({topic: changes[topic] for topic in topics}))
        elif commit:
            why = f"its spec came with {commit[:12]}, from {count(len(found), 'request')}"
            waiting |= dict.fromkeys(topics, why)
        else:
            waiting |= dict.fromkeys(topics, "it is not known which commit brought its spec")
    accepted = tuple(topic for topic in sorted(changes) if topic not in waiting)
    return Accepted(cluster=plan.cluster, topics=accepted, waiting=dict(sorted(waiting.items())))


class _Judge:
    """Judges the topics that one request brought."""

    def __init__(
        self,
        host: CodeHost,
        request: PullRequest,
        plan: Plan,
        stepping: Collection[tuple[str, str]],
    ) -> None:
        self._host, self._request = host, request
        self._cluster, self._stages = plan.cluster, plan.stages
        self._stepping = stepping

    def list_waiting(self, changes: Fields) -> Iterator[tuple[str, str]]:
        """Yield the topics whose target was not accepted, with the reason. In: their fields."""
        number = self._request.number
        comments = list(self._host.list_comments(number))
        progress = _read_result(comments, self._cluster)
        reached = set(progress.done if progress else ())
        # A deletion restores nothing, and a topic that came back is another one.
        deleted = list_deleted(changes)
        yield from ((topic, "no topic is deleted at night") for topic in sorted(deleted))
        open_ = {t: fields for t, fields in changes.items() if t not in reached | deleted}
        if not open_:
            return
        try:
            seal = find_approved_seal(self._host, self._request, self._cluster).seal
        except CodeHostError as error:
            rule = error.findings[0].rule
            if rule not in ("plan-unapproved", "plan-unreviewed"):
                raise
            yield from ((topic, error.findings[0].what) for topic in open_)
            return
        kept = unpack_fields(seal.fields)
        if kept is None:
            why = f"the approved plan of request {number} was too large to be compared"
            yield from ((topic, why) for topic in open_)
            return
        hold = self._host.find_hold(self._request, self._cluster)
        for topic, fields in open_.items():
            shown = kept.changes.get(topic, {})
            other = [
                name
                for name, change in fields.items()
                if name not in shown
                or (shown[name] != change and (topic, name) not in self._stepping)
            ]
            if other:
                named = ", ".join(other)
                yield topic, f"the approved plan of request {number} does not show this: {named}"
            elif hold:
                yield topic, f"request {number} is approved, but {hold}"
            elif before := self._find_earlier(topic, comments):
                yield topic, f"request {number} is not done on {before}, which comes first"

    def _find_earlier(self, topic: str, comments: Sequence[Note]) -> str:
        """Return a cluster of an earlier stage on which the topic is not done; empty if none.

        The request has to show a plan for it: it may not change anything there.
        """
        place = next((n for n, stage in enumerate(self._stages) if self._cluster in stage), 0)
        for cluster in (name for stage in self._stages[:place] for name in stage):
            progress = _read_result(comments, cluster)
            if select_shown(comments, cluster) and (progress is None or topic in progress.left):
                return cluster
        return ""


def _read_result(comments: Sequence[Note], cluster: str) -> Progress | None:
    result = find_marked(comments, mark_result(cluster))
    return read_progress(result.body) if result else None
