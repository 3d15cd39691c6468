"""A plan of changes becomes outcomes on a cluster, through a reader and a writer.

Belongs here: the state of each topic (stale, done or left), the order and size of requests, reading
again if an answer was lost, and waiting until every broker shows the result. Forbidden here: specs,
placement, clients, moves, and any step that the plan does not hold.
"""
