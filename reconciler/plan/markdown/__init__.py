"""A plan as a comment on a pull request: what a reviewer must know first, the rest folded.

Belongs here: what is told in which order, how it is marked up, and how it is folded to fit.
Forbidden here: files, variables of the environment, and anything that would cut a sentence.
"""

from reconciler.plan.markdown.page import COMMENT_LIMIT, mark_cluster, render_markdown

__all__ = ["COMMENT_LIMIT", "mark_cluster", "render_markdown"]
