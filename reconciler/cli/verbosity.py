"""What `--verbose` and `--debug` show on stderr while a command runs; no secret of the run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import click

from reconciler.errors import escape_unprintable, hide_secrets

LOGGED = "reconciler"
"""The logger above those of our own modules. Other libraries may log values that are secret."""


@contextmanager
def showing_log(level: int) -> Iterator[None]:
    """Show what our modules log from a level on, while it lasts."""
    logger, handler = logging.getLogger(LOGGED), _ToStderr()
    before = logger.level, logger.propagate
    logger.setLevel(level)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
        logger.setLevel(logger.level)  # forgets which levels were enabled


class _ToStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write a record in a line, after the time of day."""
        when = datetime.fromtimestamp(record.created).astimezone()
        text = escape_unprintable(hide_secrets(record.getMessage()))
        click.echo(f"{when:%H:%M:%S}.{record.msecs:03.0f} {text}", err=True)
