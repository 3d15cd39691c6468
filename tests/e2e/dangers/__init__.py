"""Dangerous edits and states, each acted out on a real cluster, and the page that tells of them.

A danger is a function that takes a `Stage`; the first line of its docstring is its name. A module
holds one kind of danger: its docstring is the heading, `DANGERS` the order.
docs/explanation/dangers.md is written by `make dangers`; the test acts all of them out and
compares.
"""
