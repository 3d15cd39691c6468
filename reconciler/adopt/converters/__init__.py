"""What other tools' files say of topics, in one form; what no spec can say is a note.

Belongs here: one module a tool, each a function from its documents to topics and notes. Forbidden
here: judging configs and names, which is the same for all of them.
"""
