"""Specs for what is there already: a live cluster, or files that other tools read.

Belongs here: choosing files, defaults and profiles as a person would, saying a live topic in as
few lines as possible, and amending what people wrote without touching the rest of it. Forbidden
here: reaching a cluster, and writing into an estate before `write_texts`, which comes last.
"""

from reconciler.adopt.adoption import Adoption
from reconciler.adopt.convert import TOOLS, convert_files
from reconciler.adopt.live import Request, adopt_cluster
from reconciler.adopt.staging import open_staging, write_texts

__all__ = [
    "TOOLS",
    "Adoption",
    "Request",
    "adopt_cluster",
    "convert_files",
    "open_staging",
    "write_texts",
]
