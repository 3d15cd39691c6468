"""Run a campaign of faults: `python -m campaign apply` or `python -m campaign moves`."""

from __future__ import annotations

import sys

from campaign import command
from campaign.moves import command as moves_command

COMMANDS = {"apply": command.main, "moves": moves_command.main}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit("usage: python -m campaign apply|moves [--help]")
    sys.exit(COMMANDS[sys.argv[1]](sys.argv[2:]))
