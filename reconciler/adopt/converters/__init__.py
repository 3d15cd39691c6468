"""The topics of other tools' files in one form; what a spec cannot express is a note.

Belongs here: one module per tool, each a function from its documents to topics and notes. Forbidden
here: checks of configs and names, which are the same for all tools.
"""
