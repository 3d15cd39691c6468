"""The command line: one verb a module, and the only code that prints.

Output goes to stdout, messages and progress to stderr, so that a pipe holds nothing but output.
"""

from reconciler.cli.app import main

__all__ = ["main"]
