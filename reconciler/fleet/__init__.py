"""The same stages as tables over many clusters, on Spark: for the nightly jobs of a platform team.

    clusters ──► source ──► lake ──► plan, audit, history ──► page
    spec tree ──► source ──┘

Belongs here: sources that read clusters and spec trees into tables, the lake that keeps them, and
jobs that are DataFrame to DataFrame. A cluster's rows are handed, as one Arrow group, to the very
same diff and placement that `reconciler plan` runs. Only the DataFrame API is used, so that a job
runs on a local session, a Spark cluster or Spark Connect alike.
Forbidden here: any write to Kafka. Spark repeats tasks; applying belongs to one process.
"""

from typing import TYPE_CHECKING

from reconciler.exports import export_lazily

if TYPE_CHECKING:
    from reconciler.fleet.audit import (
        AUDIT_RULES,
        SEVERITIES,
        Cause,
        count_severities,
        order_findings,
        select_findings,
        summarise_causes,
    )
    from reconciler.fleet.generator import (
        GENERATED_ROOT,
        MOST_TOPICS_IN_FILES,
        FleetSize,
        generate_fleet,
        list_troubles,
        write_estate,
    )
    from reconciler.fleet.globs import translate_globs
    from reconciler.fleet.jobs import (
        Collected,
        audit_collection,
        collect_fleet,
        plan_collection,
    )
    from reconciler.fleet.lake import (
        OF_A_CATALOGUE,
        Holding,
        Keeping,
        Lake,
        LocalStore,
        Published,
        Store,
        check_lake,
        choose_kept,
        compact_lake,
        encode_commit,
        find_ahead,
        is_path,
        remove_collections,
        start_attempt,
        take_inventory,
    )
    from reconciler.fleet.metrics import gather_metrics
    from reconciler.fleet.page import gather_page, render_page
    from reconciler.fleet.session import Engine, Interrupts, open_session
    from reconciler.fleet.source import KafkaMetadata, SpecTree, Tree, choose_clusters, find_tree
    from reconciler.fleet.tables import (
        DRIFT,
        EVENTS,
        FINDINGS,
        GROWTH,
        MOVE_PLANS,
        PLANS,
        LakeTable,
    )
    from reconciler.fleet.tracing import (
        MOST_PARTS,
        fold_history,
        keep_collections,
        read_history,
        trace_collections,
    )
    from reconciler.fleet.trouble import plain_reasons, watch_tasks
else:
    __getattr__ = export_lazily(
        __name__,
        {
            "audit": (
                "AUDIT_RULES Cause SEVERITIES count_severities select_findings order_findings "
                "summarise_causes"
            ),
            "generator": (
                "FleetSize GENERATED_ROOT MOST_TOPICS_IN_FILES generate_fleet list_troubles "
                "write_estate"
            ),
            "globs": "translate_globs",
            "jobs": "Collected audit_collection collect_fleet plan_collection",
            "lake": (
                "Lake LocalStore OF_A_CATALOGUE Published find_ahead is_path "
                "remove_collections start_attempt encode_commit check_lake choose_kept "
                "compact_lake take_inventory Holding Keeping Store"
            ),
            "metrics": "gather_metrics",
            "page": "gather_page render_page",
            "session": "Engine Interrupts open_session",
            "source": "KafkaMetadata SpecTree Tree choose_clusters find_tree",
            "tables": "DRIFT EVENTS FINDINGS GROWTH MOVE_PLANS PLANS LakeTable",
            "tracing": ("MOST_PARTS fold_history keep_collections read_history trace_collections"),
            "trouble": "plain_reasons watch_tasks",
        },
    )

READ, PLANNED = "read", "planned"
"""The `status` of a successful reading or plan; otherwise it is a rule id."""

__all__ = [
    "AUDIT_RULES",
    "DRIFT",
    "EVENTS",
    "FINDINGS",
    "GENERATED_ROOT",
    "GROWTH",
    "MOST_PARTS",
    "MOST_TOPICS_IN_FILES",
    "MOVE_PLANS",
    "OF_A_CATALOGUE",
    "PLANNED",
    "PLANS",
    "READ",
    "SEVERITIES",
    "Cause",
    "Collected",
    "Engine",
    "FleetSize",
    "Holding",
    "Interrupts",
    "KafkaMetadata",
    "Keeping",
    "Lake",
    "LakeTable",
    "LocalStore",
    "Published",
    "SpecTree",
    "Store",
    "Tree",
    "audit_collection",
    "check_lake",
    "choose_clusters",
    "choose_kept",
    "collect_fleet",
    "compact_lake",
    "count_severities",
    "encode_commit",
    "find_ahead",
    "find_tree",
    "fold_history",
    "gather_metrics",
    "gather_page",
    "generate_fleet",
    "is_path",
    "keep_collections",
    "list_troubles",
    "open_session",
    "order_findings",
    "plain_reasons",
    "plan_collection",
    "read_history",
    "remove_collections",
    "render_page",
    "select_findings",
    "start_attempt",
    "summarise_causes",
    "take_inventory",
    "trace_collections",
    "translate_globs",
    "watch_tasks",
    "write_estate",
]
