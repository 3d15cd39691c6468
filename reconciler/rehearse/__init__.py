"""A rehearsal of a plan on a throwaway cluster: its setup and its result.

Belongs here: the setup that a throwaway cluster has to be brought to, the plan bound to that
cluster, and the comparison of what was planned with what is found. Forbidden here: starting
clusters, clients, and everything that could reach the cluster that the plan is for.
"""

from reconciler.rehearse.bind import bind_plan, plan_setup
from reconciler.rehearse.compare import compare_found
from reconciler.rehearse.markdown import render_rehearsal_comment
from reconciler.rehearse.needs import Machine, Needs, measure_needs
from reconciler.rehearse.rehearsal import Rehearsal, encode_rehearsal
from reconciler.rehearse.setup import Setup, choose_release, keep_known, prepare_setup
from reconciler.rehearse.text import render_rehearsal

__all__ = [
    "Machine",
    "Needs",
    "Rehearsal",
    "Setup",
    "bind_plan",
    "choose_release",
    "compare_found",
    "encode_rehearsal",
    "keep_known",
    "measure_needs",
    "plan_setup",
    "prepare_setup",
    "render_rehearsal",
    "render_rehearsal_comment",
]
