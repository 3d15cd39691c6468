"""Where collections are kept: tables, and the list of what was published in them.

    partitions/attempt=20261121T030000Z-state-1f0c9a2e/part-*.parquet
    collections/20261121T030000Z-state-1f0c9a2e.json

A job that collects, plans or audits makes one attempt. An attempt writes into directories of its
own, so two jobs never share one. Its last act is to write one file into `collections`, which says
how many rows of each cluster each table has. This publishes the attempt: nothing is read before,
and every read counts the rows again. A collection that is made twice has two attempts; the newest
one counts. docs/explanation/decisions/0009 says why, and what holds for other stores.

Belongs here: names of attempts, publications, locks, how tables are written and read, and
maintenance: what a lake holds, whether it is complete, and what may go.
Forbidden here: what the tables mean.
"""
