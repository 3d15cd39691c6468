"""The nouns that every stage shares: brokers, topic specs and states, steps, plans, outcomes.

Belongs here: frozen values, and functions of a single value. A stage takes some of these values and
returns others. Forbidden here: all I/O.
"""
