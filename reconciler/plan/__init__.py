"""Stage 4: changes and assignments become a Plan, the frozen value that people approve.

Belongs here: building it, its steps, its canonical JSON and fingerprint, and its renderings.
Forbidden here: clients, and anything that would change a cluster.
"""

from reconciler.plan.build import Placing, build_plan
from reconciler.plan.codec import decode_plan, encode_plan, fingerprint_plan, summarise
from reconciler.plan.judgement import judge_changes
from reconciler.plan.steps import alter_config, brokers_of, count_steps, is_deletion, steps_of
from reconciler.plan.text import render_text
from reconciler.plan.whole import guard_plan, list_refusals

__all__ = [
    "Placing",
    "alter_config",
    "brokers_of",
    "build_plan",
    "count_steps",
    "decode_plan",
    "encode_plan",
    "fingerprint_plan",
    "guard_plan",
    "is_deletion",
    "judge_changes",
    "list_refusals",
    "render_text",
    "steps_of",
    "summarise",
]
