"""The Python interface: what the command line does, in five calls. The command line uses it, too.

    estate = load_estate("topics")
    state = read_cluster(estate, "prod-eu")
    plan = build_plan(estate, "prod-eu", state)
    print(render_plan(plan))
    apply_plan(plan, estate)

In addition, `read_snapshot` reads a state from a file, and `take_snapshot` reads an entire cluster
for such a file. `read_moves` and `watch_moves` report moves in flight, and
`control_moves` slows, cancels and settles them. Errors are ReconcilerErrors
with a text for people; nothing prints. Calls import only the stages that they need, so that a start
is fast.
"""

from typing import TYPE_CHECKING

from reconciler.exports import export_lazily

if TYPE_CHECKING:
    from reconciler.api.adoption import adopt_cluster, convert_files, write_adoption
    from reconciler.api.applying import apply_plan, check_apply
    from reconciler.api.authors import find_author
    from reconciler.api.connections import find_cluster, open_address, open_connection
    from reconciler.api.estate_files import list_estate_files, read_estate_files
    from reconciler.api.move_control import Cancelled, Locking, Settled, control_moves
    from reconciler.api.moves import read_moves, watch_moves
    from reconciler.api.planning import (
        build_moves,
        build_plan,
        load_estate,
        plan_elections,
        plan_rebalance,
        plan_rows,
        read_cluster,
        read_for_moves,
        read_rows,
    )
    from reconciler.api.records import ApplyRecord, RunRecord, begin_control, begin_record
    from reconciler.api.rehearsing import rehearse_plan
    from reconciler.api.rendering import (
        PlanFormat,
        draw_explanation,
        explain_topic,
        export_rows,
        render_explanation,
        render_plan,
    )
    from reconciler.api.snapshots import read_snapshot, take_snapshot, write_snapshot

__all__ = [
    "ApplyRecord",
    "Cancelled",
    "Locking",
    "PlanFormat",
    "RunRecord",
    "Settled",
    "adopt_cluster",
    "apply_plan",
    "begin_control",
    "begin_record",
    "build_moves",
    "build_plan",
    "check_apply",
    "control_moves",
    "convert_files",
    "draw_explanation",
    "explain_topic",
    "export_rows",
    "find_author",
    "find_cluster",
    "list_estate_files",
    "load_estate",
    "open_address",
    "open_connection",
    "plan_elections",
    "plan_rebalance",
    "plan_rows",
    "read_cluster",
    "read_estate_files",
    "read_for_moves",
    "read_moves",
    "read_rows",
    "read_snapshot",
    "rehearse_plan",
    "render_explanation",
    "render_plan",
    "take_snapshot",
    "watch_moves",
    "write_adoption",
    "write_snapshot",
]

__getattr__ = export_lazily(
    __name__,
    {
        "adoption": "adopt_cluster convert_files write_adoption",
        "applying": "apply_plan check_apply",
        "authors": "find_author",
        "connections": "find_cluster open_address open_connection",
        "estate_files": "list_estate_files read_estate_files",
        "move_control": "Cancelled Locking Settled control_moves",
        "moves": "read_moves watch_moves",
        "planning": (
            "build_moves build_plan load_estate plan_elections plan_rebalance plan_rows "
            "read_cluster read_for_moves read_rows"
        ),
        "records": "ApplyRecord RunRecord begin_control begin_record",
        "rehearsing": "rehearse_plan",
        "rendering": (
            "PlanFormat draw_explanation explain_topic export_rows render_explanation render_plan"
        ),
        "snapshots": "read_snapshot take_snapshot write_snapshot",
    },
)
"""A call imports what it needs: `validate` waits for no client and no plan."""
