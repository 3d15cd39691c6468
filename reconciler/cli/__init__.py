"""The command line: one module per verb, and the only code that prints.

Output goes to stdout, messages and progress to stderr, so that a pipe holds nothing but output.
"""

from reconciler.cli.app import main

__all__ = ["main"]
