"""How hard the laws are tried: quickly by default, HYPOTHESIS_PROFILE=thorough for longer."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from sizes import THOROUGH

SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile(
    "ci", deadline=None, max_examples=12, suppress_health_check=SLOW_IS_FINE, print_blob=True
)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=400)
settings.load_profile("thorough" if THOROUGH else "ci")
