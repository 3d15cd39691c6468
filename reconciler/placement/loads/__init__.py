"""Balance by load: every broker within a band around its share, with the fewest bytes copied.

    shares ──► problem ──► search (on a layout) ──► rows
                  └──────► bounds: what no rows can go below

Belongs here: bytes, rates and counts as arrays; all of it needs numpy, so import it only where a
plan is made by load. Forbidden here: topics by name, specs, and the levels of squares.
"""
