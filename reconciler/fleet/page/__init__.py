"""A fleet on one page: a collection of the lake as HTML that a browser opens from a file.

    lake ──► gather ──► FleetPage ──► page
               └─── tables ───┘

Belongs here: the tables of a page, with the few bounded rows that it shows, pictures of them, and
the page itself with its style and script. A new table is a declaration in `tables`, and its place
in page.html.jinja. `gather` and `measures` know Spark; the rest is value to text. Forbidden here:
anything that a page would have to fetch, and any size that grows with the fleet.
"""
