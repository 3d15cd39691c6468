"""Stage 1: from YAML text to TopicSpecs, or to all errors at once.

Belongs here: reading texts with their lines and columns, their form, names, configs, inheritance
and the rules across fields. Forbidden here: any file, cluster, network, clock or environment
variable. `estate` shows the entire pipeline; start there.
"""
