"""A plan run for real where nothing can be lost: what has to stand before, and how it went.

Belongs here: the scene that a throwaway cluster has to be brought to, the plan bound to that
cluster, and the comparison of what was planned with what is found. Forbidden here: starting
clusters, clients, and everything that could reach the cluster that the plan is for.
"""

from reconciler.rehearse.bind import bind_plan, plan_scene
from reconciler.rehearse.compare import compare_found
from reconciler.rehearse.markdown import render_markdown
from reconciler.rehearse.needs import Machine, Needs, measure_needs
from reconciler.rehearse.rehearsal import Rehearsal, encode_rehearsal
from reconciler.rehearse.release import choose_release
from reconciler.rehearse.scene import Scene, set_scene
from reconciler.rehearse.text import render_text

__all__ = [
    "Machine",
    "Needs",
    "Rehearsal",
    "Scene",
    "bind_plan",
    "choose_release",
    "compare_found",
    "encode_rehearsal",
    "measure_needs",
    "plan_scene",
    "render_markdown",
    "render_text",
    "set_scene",
]
