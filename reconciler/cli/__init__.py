"""The command line: one module per verb, and the only code that prints.

Output goes to stdout, messages and progress to stderr, so that a pipe holds nothing but output.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 1 error or refusal, 2 pending, 64 usage."""
    try:
        # Here, because an interrupt of an import at the top would end in a traceback.
        from reconciler.cli import app
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)  # as shells report SIGINT
    app.main(arguments)
