"""The explanation of a topic's placement: one frozen matrix, drawn as text and as a picture.

Belongs here: partitions by brokers, their totals, the likely skew of Kafka's own placement, and
sentences that explain why a spread is not more even. Forbidden here: placement itself, and anything
that reads clusters or files.
"""

from reconciler.plan.explain.matrix import Matrix, build_layout, build_matrix
from reconciler.plan.explain.picture import draw_matrix
from reconciler.plan.explain.text import render_layout, render_matrix

__all__ = [
    "Matrix",
    "build_layout",
    "build_matrix",
    "draw_matrix",
    "render_layout",
    "render_matrix",
]
