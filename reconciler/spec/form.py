"""What the models of all documents share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Form(BaseModel):
    """What every model shares: no unknown keys, nothing converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)
