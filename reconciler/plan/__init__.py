"""Stage 4: changes and assignments become a Plan, the frozen value that people approve.

Belongs here: its construction, its steps, its canonical JSON and fingerprint, and its renderings.
Forbidden here: clients, and anything that would change a cluster.
"""

from typing import TYPE_CHECKING

from reconciler.diff.guards import list_refusals
from reconciler.exports import export_lazily
from reconciler.model import brokers_of, is_deletion, steps_of
from reconciler.plan.build import Placing, assemble_plan
from reconciler.plan.cluster import plan_cluster
from reconciler.plan.codec import decode_plan, encode_plan, fingerprint_plan
from reconciler.plan.policy import judge_changes
from reconciler.plan.text import paint_outcome, render_text
from reconciler.plan.view import PlanView, TopicView, describe_shift, view_plan
from reconciler.plan.wording import view_configs, view_refused

if TYPE_CHECKING:
    from reconciler.plan.accepted import Accepted, decode_accepted, encode_accepted
    from reconciler.plan.approval import (
        Approval,
        decode_approval,
        encode_approval,
        list_new_rows,
        pack,
        pack_rows,
        unpack,
        unpack_rows,
    )
    from reconciler.plan.document import PlanDocument
    from reconciler.plan.elections import assemble_elections
    from reconciler.plan.explain import Matrix, build_matrix, draw_matrix, render_matrix
    from reconciler.plan.fields import (
        Difference,
        Fields,
        Kept,
        asks_for,
        compare_fields,
        is_reached,
        keep_fields,
        list_deleted,
        list_differences,
        list_fields,
        pack_fields,
        unpack_fields,
    )
    from reconciler.plan.forecast import (
        find_urgent,
        forecast_moves,
        list_row_moves,
        measure_fullness,
    )
    from reconciler.plan.github import (
        SUMMARY_LIMIT,
        annotate_findings,
        list_outputs,
        render_github,
    )
    from reconciler.plan.gradual import GradualStep, list_gradual_steps
    from reconciler.plan.markdown import COMMENT_LIMIT, mark_cluster, render_markdown
    from reconciler.plan.markdown.marks import code, fence, prose, tabulate
    from reconciler.plan.move_guards import (
        guard_moves,
        judge_lists,
        least_rate,
        name_rate,
        refuse_default,
    )
    from reconciler.plan.moves import assemble_moves, plan_moves
    from reconciler.plan.outdated import find_outdated
    from reconciler.plan.reassignments import decode_rows, encode_rows, plan_rows
    from reconciler.plan.rebalance import plan_rebalance
    from reconciler.plan.window import RowMove, Seats, order_moves

__all__ = [
    "COMMENT_LIMIT",
    "SUMMARY_LIMIT",
    "Accepted",
    "Approval",
    "Difference",
    "Fields",
    "GradualStep",
    "Kept",
    "Matrix",
    "Placing",
    "PlanDocument",
    "PlanView",
    "RowMove",
    "Seats",
    "TopicView",
    "annotate_findings",
    "asks_for",
    "assemble_elections",
    "assemble_moves",
    "assemble_plan",
    "brokers_of",
    "build_matrix",
    "code",
    "compare_fields",
    "decode_accepted",
    "decode_approval",
    "decode_plan",
    "decode_rows",
    "describe_shift",
    "draw_matrix",
    "encode_accepted",
    "encode_approval",
    "encode_plan",
    "encode_rows",
    "fence",
    "find_outdated",
    "find_urgent",
    "fingerprint_plan",
    "forecast_moves",
    "guard_moves",
    "is_deletion",
    "is_reached",
    "judge_changes",
    "judge_lists",
    "keep_fields",
    "least_rate",
    "list_deleted",
    "list_differences",
    "list_fields",
    "list_gradual_steps",
    "list_new_rows",
    "list_outputs",
    "list_refusals",
    "list_row_moves",
    "mark_cluster",
    "measure_fullness",
    "name_rate",
    "order_moves",
    "pack",
    "pack_fields",
    "pack_rows",
    "paint_outcome",
    "plan_cluster",
    "plan_moves",
    "plan_rebalance",
    "plan_rows",
    "prose",
    "refuse_default",
    "render_github",
    "render_markdown",
    "render_matrix",
    "render_text",
    "steps_of",
    "tabulate",
    "unpack",
    "unpack_fields",
    "unpack_rows",
    "view_configs",
    "view_plan",
    "view_refused",
]

__getattr__ = export_lazily(
    __name__,
    {
        "accepted": "Accepted decode_accepted encode_accepted",
        "approval": (
            "Approval decode_approval encode_approval list_new_rows pack pack_rows unpack "
            "unpack_rows"
        ),
        "document": "PlanDocument",
        "elections": "assemble_elections",
        "reassignments": "decode_rows encode_rows plan_rows",
        "rebalance": "plan_rebalance",
        "explain": "Matrix build_matrix draw_matrix render_matrix",
        "fields": (
            "Difference Fields Kept asks_for compare_fields is_reached keep_fields list_deleted "
            "list_differences list_fields pack_fields unpack_fields"
        ),
        "forecast": "find_urgent forecast_moves list_row_moves measure_fullness",
        "github": "SUMMARY_LIMIT annotate_findings list_outputs render_github",
        "gradual": "GradualStep list_gradual_steps",
        "markdown": "COMMENT_LIMIT mark_cluster render_markdown",
        "markdown.marks": "code fence prose tabulate",
        "move_guards": "guard_moves judge_lists least_rate name_rate refuse_default",
        "moves": "assemble_moves plan_moves",
        "outdated": "find_outdated",
        "window": "RowMove Seats order_moves",
    },
)
"""Renderings are imported on first use."""
