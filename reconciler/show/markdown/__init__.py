"""A plan as a comment on a pull request: the most important parts first, the rest folded.

Belongs here: the order of the parts, their markup, and folding to fit. Forbidden here: files,
variables of the environment, and anything that would cut a sentence.
"""
