"""The command line as the campaign starts it: the real one, with less patience where asked.

Run by path. Waiting out 45 s for each lost answer would take most of a campaign's time, and a
topic of 5,001 partitions most of its processors': with `scaled` first, requests are given up after
8 s, and a request takes few topics and partitions, so that apply sends many.
"""

from __future__ import annotations

import sys

SCALED_RECORDS = 10
SCALED_TOPICS = 3
SCALED_REQUEST_S = 8.0


def scale() -> None:
    """Set the constants before anything else imports them by name."""
    from reconciler.apply import kinds

    kinds.MAX_RECORDS = SCALED_RECORDS
    kinds.MAX_TOPICS = kinds.MAX_ALONE = SCALED_TOPICS
    from reconciler.kafka import writer

    writer.REQUEST_S = SCALED_REQUEST_S
    writer.OPERATION_S = SCALED_REQUEST_S - 1


if __name__ == "__main__":
    if sys.argv[1] == "scaled":
        scale()
    from reconciler.cli import main

    main(sys.argv[2:])
