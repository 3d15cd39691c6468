"""Specs for existing topics: of a live cluster, or in files of other tools.

Belongs here: choosing files, defaults and profiles as a person would, saying a live topic in as
few lines as possible, and amending what people wrote without touching the rest of it. Forbidden
here: reaching a cluster, and reading or writing any file: estates come and go as texts.
"""

from reconciler.adopt.convert import TOOLS, convert_topics
from reconciler.adopt.draft import Adoption, EstateDraft, open_draft
from reconciler.adopt.live import AdoptionRequest, adopt_topics

__all__ = [
    "TOOLS",
    "Adoption",
    "AdoptionRequest",
    "EstateDraft",
    "adopt_topics",
    "convert_topics",
    "open_draft",
]
