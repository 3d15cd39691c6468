"""A fleet on one page: a collection of the lake as HTML that a browser opens from a file.

    lake ──► gather ──► Report ──► page

Belongs here: the few bounded rows that a page shows, pictures of them, and the page itself with
its style and script beside it. `gather` is the only module that knows Spark; the rest is value to
text. Forbidden here: anything that a page would have to fetch, and any size that grows with the
fleet.
"""

from reconciler.fleet.report.contents import Report
from reconciler.fleet.report.page import render_page

__all__ = ["Report", "render_page"]
