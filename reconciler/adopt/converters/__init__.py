"""The topics of other tools' files in one form; what a spec cannot express is a note.

Belongs here: one module a tool, each a function from its documents to topics and notes. Forbidden
here: judging configs and names, which is the same for all of them.
"""
