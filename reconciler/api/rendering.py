"""A plan and its explanations, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never

if TYPE_CHECKING:
    from reconciler.model.cluster import ClusterState
    from reconciler.model.plan import Plan
    from reconciler.moves.compare import ComparedChoices
    from reconciler.show.explain.matrix import Matrix
    from reconciler.spec.estate import Estate

PlanFormat = Literal["text", "json", "markdown", "github"]


def export_rows(plan: Plan, *, before: bool = False) -> str:
    """Return the rows that a plan of moves changes, as kafka-reassign-partitions reads them.

    `before`: the rows before the plan, to go back to them.
    """
    from reconciler.moves.reassignments import encode_rows

    return encode_rows(plan, before=before)


def render_plan(
    plan: Plan,
    format: PlanFormat = "text",  # noqa: A002
    *,
    colour: bool = False,
    saved: str | None = None,
    unmanaged: bool = False,
    width: int | None = None,
) -> str:
    """Render a plan: text for people, canonical JSON, a comment, or annotations of GitHub.

    `saved` is the path of the plan file, for the comment. `unmanaged` lists unmanaged topics in the
    text; JSON and comments always list them. `width` is the longest line of a text, in characters,
    unless a name is longer; None does not break lines.
    """
    from reconciler.planfile.codec import encode_plan
    from reconciler.show.text import render_text

    match format:
        case "json":
            return encode_plan(plan)
        case "markdown":
            from reconciler.show.markdown.page import render_markdown

            return render_markdown(plan, saved=saved)
        case "github":
            from reconciler.show.github import render_github

            return render_github(plan)
        case "text":
            return render_text(plan, colour=colour, unmanaged=unmanaged, width=width)
        case _:
            assert_never(format)


def render_choices(compared: ComparedChoices, format: PlanFormat = "text") -> str:  # noqa: A002
    """Render the choices of a rebalance: text for people, JSON, or a comment.

    Errors: UsageError for annotations, since choices are no findings.
    """
    from reconciler.errors import UsageError
    from reconciler.show import choices

    match format:
        case "json":
            return choices.list_choices_json(compared)
        case "markdown":
            return choices.render_choices_markdown(compared)
        case "github":
            raise UsageError("--compare finds nothing to annotate; leave --format github out")
        case "text":
            return choices.render_choices(compared)
        case _:
            assert_never(format)


def explain_topic(
    estate: Estate, cluster: str, state: ClusterState, plan: Plan, topic: str
) -> Matrix:
    """Explain where a plan puts one topic, and why: a value to be rendered as text or picture.

    Errors: UsageError if neither the plan nor the cluster has such a topic.
    """
    from difflib import get_close_matches

    from reconciler.errors import UsageError
    from reconciler.show.explain.matrix import build_matrix

    known = {*state.topics, *(planned.name for planned in plan.topics)}
    if topic not in known:
        near = get_close_matches(topic, sorted(known), n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"{topic!r} is neither in the plan nor on {cluster}{meant}")
    spec = next((s for s in estate.topics_for(cluster) if s.name == topic), None)
    return build_matrix(topic, plan, state, spec=spec)


def render_explanation(matrix: Matrix, *, width: int = 120, colour: bool = False) -> str:
    """Render an explanation as text, no line wider than `width` characters."""
    from reconciler.show.explain.text import render_matrix

    return render_matrix(matrix, width=width, colour=colour)


def draw_explanation(matrix: Matrix) -> str:
    """Draw an explanation as a standalone SVG document."""
    from reconciler.show.explain.picture import draw_matrix

    return draw_matrix(matrix)
