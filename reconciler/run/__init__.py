"""What every run shares, of changes and of moves: ports, events, and endings.

Belongs here: the interfaces that a run takes, what it says while it works, how it can end, and the
checks that every run makes first. Forbidden here: what only one kind of plan needs, and clients.
"""
