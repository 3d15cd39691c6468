"""Campaigns of faults on real clusters: of apply, and in `moves` of moves under traffic.

That of apply has one fault a round, and a judge that trusts no report.

A round draws a live state, an estate and one fault from its seed and number (`world`, `faults`),
lets the fault strike at a chosen request of apply (`network`), heals everything, reads every broker
by hand (`truth`), compares that with report, exit code, journal and audit record (`records`,
`judge`), and repeats the command until nothing is left to do (`lane`). Nothing of it
uses reconciler's reader: what is judged must not be the judge. `make campaign` runs it, and writes
docs/explanation/reliability.md (`page`).
"""
