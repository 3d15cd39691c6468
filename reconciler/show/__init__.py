"""What people see: a plan, its explanation and moves in flight, as text, Markdown and pictures.

    plan ──► view ──► text, markdown, github
    topic ──► explain

Belongs here: views first, then renderers that only format them. Forbidden here: any decision.
"""
