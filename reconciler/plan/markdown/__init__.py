"""A plan as a comment on a pull request: the most important parts first, the rest folded.

Belongs here: the order of the parts, their markup, and folding to fit. Forbidden here: files,
variables of the environment, and anything that would cut a sentence.
"""

from reconciler.plan.markdown.page import COMMENT_LIMIT, mark_cluster, render_markdown

__all__ = ["COMMENT_LIMIT", "mark_cluster", "render_markdown"]
