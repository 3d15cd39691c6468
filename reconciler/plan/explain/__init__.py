"""Why a topic lies where it does: one frozen matrix, drawn as text and as a picture.

Belongs here: partitions by brokers, their totals, what Kafka's dice would have risked, and the
sentences that say why a spread could not be more even. Forbidden here: placing anything, and
anything that reads the world.
"""

from reconciler.plan.explain.matrix import Matrix, explain_topic, lay_out_topic
from reconciler.plan.explain.picture import draw_matrix
from reconciler.plan.explain.text import render_layout, render_matrix

__all__ = [
    "Matrix",
    "draw_matrix",
    "explain_topic",
    "lay_out_topic",
    "render_layout",
    "render_matrix",
]
