"""The comment that reports on a merged request which steps of its gradual changes are applied.

The first step is applied by the merge, and the others by the nightly run, one per night. Each run
edits the comment. Its hidden last line holds the rows of the table, because a run has only the
topics that it plans.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

from pydantic import TypeAdapter

from reconciler.codehost.comments import ROWS_LIMIT, find_marked, link_run, settle_write
from reconciler.codehost.host import Links, Note, Run
from reconciler.codehost.notices import TopicNotice, end_without_apply, notice_apply
from reconciler.codehost.results import cut, fit_table
from reconciler.codehost.seals import read_seal, select_shown
from reconciler.errors import CodeHostError, Finding
from reconciler.model.plan import Plan
from reconciler.planfile.approval import pack, unpack
from reconciler.run.ending import Ended, Ending
from reconciler.show.fields import unpack_fields
from reconciler.show.gradual import GradualStep
from reconciler.show.markdown.marks import code
from reconciler.show.view import view_plan
from reconciler.units import count, describe_value

_DONE, _REACHED = "done", "reached"
_HEADS = ("Topic", "Config", "Step", "Change", "Result", "Left")
_ROWS = re.compile(r"<!-- reconciler:steps rows=([A-Za-z0-9+/]+=*) -->")


class Row(NamedTuple):
    """The newest step of one config of a topic, as the table shows it."""

    topic: str
    key: str
    number: str
    change: str
    result: str
    left: str


_TABLE = TypeAdapter(tuple[Row, ...])


def report_gradual(
    run: Run,
    plan: Plan,
    steps: Iterable[GradualStep],
    origins: Mapping[str, str],
    ending: Ending | None,
) -> list[str]:
    """Report steps of gradual changes on the requests that brought the specs of their topics.

    `origins` has the commit that brought the current spec of each topic, if it is known. `ending`
    is None if apply did not begin. Without a single request there is no comment.
    Errors: CodeHostError with every request that could not be written.
    """
    by_commit: defaultdict[str, list[GradualStep]] = defaultdict(list)
    for step in steps:
        by_commit[origins.get(step.topic, "")].append(step)
    by_request: defaultdict[int, list[GradualStep]] = defaultdict(list)
    said: list[str] = []
    trouble: list[Finding] = []
    for commit, brought in by_commit.items():
        try:
            found = run.host.list_brought(commit) if commit else ()
        except CodeHostError as error:
            trouble += error.findings
            continue
        if len(found) == 1:
            by_request[found[0].number] += brought
            continue
        topics = ", ".join(sorted({step.topic for step in brought}))
        whose = f"the spec of {topics}"
        if commit:
            said.append(f"{whose} came with {commit[:12]}, from {count(len(found), 'request')}")
        else:
            said.append(f"it is not known which commit brought {whose}")
    results = _judge(plan, ending)
    for number, asked in sorted(by_request.items()):
        try:
            said.append(_comment(run, plan.cluster, number, asked, results))
        except CodeHostError as error:
            trouble += error.findings
    if trouble:
        raise CodeHostError(trouble)
    return said


def _judge(plan: Plan, ending: Ending | None) -> Mapping[str, TopicNotice]:
    """Return the result of each topic of a plan, and why one is not done."""
    view = view_plan(plan)
    ending = ending or end_without_apply(view, "")
    if ending.ended is Ended.NOT_APPROVED:  # a nightly run needs no approval
        why = "apply did not start; see the log of the run"
        ending = replace(ending, ended=Ended.ERROR, error=why)
    notice = notice_apply(plan.cluster, plan, ending, "", Links())
    told = {one.topic: one for one in reversed(notice.topics if notice else ())}
    why = notice.reason if notice else ""
    if ending.ended is Ended.REFUSED:
        refused = ", ".join(topic.name for topic in view.refused)
        why = f"nothing is applied while the plan refuses {refused}"
    # A refusal of the entire plan, which has no topic, is the reason for all of them.
    whole = told.get("", TopicNotice("", str(ending.ended), why))
    done = {o.topic: TopicNotice(o.topic, _DONE) for o in ending.outcomes if o.kind.is_done}
    return {topic.name: whole for topic in plan.topics} | told | done


def _comment(
    run: Run,
    cluster: str,
    number: int,
    steps: Sequence[GradualStep],
    results: Mapping[str, TopicNotice],
) -> str:
    """Write or replace the comment on one request."""

    def write() -> str:
        comments = list(run.host.list_comments(number))
        starts = _find_starts(comments, cluster)
        written = find_marked(comments, mark_gradual(cluster))
        rows = {(row.topic, row.key): row for row in _read_rows(written.body if written else "")}
        for step in steps:
            start = starts.get((step.topic, step.key))
            rows[step.topic, step.key] = _describe(step, start, results[step.topic])
        body = _write(run, cluster, [rows[each] for each in sorted(rows)])
        if written:
            run.host.update_comment(number, written.id, body)
            return f"comment {written.id} on request {number} updated"
        run.host.create_comment(number, body)
        return f"comment on request {number} written"

    return settle_write(write)


def mark_gradual(cluster: str) -> str:
    """Return the invisible first line of the comment with the steps of a cluster."""
    return f"<!-- reconciler:gradual cluster={quote(cluster, safe='')} -->"


def _find_starts(comments: Iterable[Note], cluster: str) -> Mapping[tuple[str, str], str]:
    """Return the limits before the first steps, as the plans of the request show them."""
    starts: dict[tuple[str, str], str] = {}
    for note in select_shown(comments, cluster):
        seal = read_seal(note.body)
        changes = unpack_fields(seal.fields) if seal else None
        for topic, fields in (changes[0] if changes else {}).items():
            starts |= {(topic, key): before for key, (before, _) in fields.items() if before}
    return starts


def _describe(step: GradualStep, start: str | None, result: TopicNotice) -> Row:
    number = step.count_from(start) if start else None
    left = ", then ".join(_show(step.key, limit) for limit in step.left)
    is_done = result.result == _DONE
    why = " ".join(filter(None, [cut(result.reason), code(result.rule) if result.rule else ""]))
    return Row(
        step.topic,
        step.key,
        f"{number[0]} of {number[1]}" if number else "",
        f"{_show(step.key, step.before)} → {_show(step.key, step.after)}",
        _DONE if is_done else ": ".join(filter(None, [result.result, why])),
        left or (_REACHED if is_done else ""),
    )


def _show(key: str, limit: str | None) -> str:
    return "not set" if limit is None else describe_value(key, limit).removesuffix(f" ({limit})")


def _write(run: Run, cluster: str, rows: Sequence[Row]) -> str:
    if any(row.result != _DONE for row in rows):
        said = "step not done"
    else:
        said = _REACHED if all(row.left == _REACHED for row in rows) else "in progress"
    cells = [(code(row.topic), code(row.key), *row[2:]) for row in rows]
    parts = [
        f"{mark_gradual(cluster)}\n### Gradual changes on {code(cluster)}: {said}",
        fit_table(_HEADS, cells),
        f"Each nightly run applies one step. From {link_run(run)}",
    ]
    if said == "step not done":
        parts.append("**Next:** once the reason is gone, the next nightly run makes the step.")
    packed = pack(_TABLE.dump_json(tuple(rows)))
    if packed and len(packed) <= ROWS_LIMIT:
        parts.append(f"<!-- reconciler:steps rows={packed} -->")
    return "\n\n".join(parts) + "\n"


def _read_rows(body: str) -> Sequence[Row]:
    """Read the rows in the hidden last line of a comment; what is malformed holds none."""
    found = _ROWS.fullmatch(body.rstrip().rpartition("\n")[2])
    try:
        return _TABLE.validate_json(unpack(found[1])) if found else ()
    except ValueError:
        return ()
