"""How long the state machines run: HYPOTHESIS_PROFILE=thorough is for runs by hand."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SLOW_IS_FINE = [
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
    HealthCheck.data_too_large,
]

PROFILES = {
    "default": settings(max_examples=150, stateful_step_count=30, deadline=None, suppress_health_check=SLOW_IS_FINE),
    "thorough": settings(max_examples=3000, stateful_step_count=60, deadline=None, suppress_health_check=SLOW_IS_FINE),
}
STATEFUL = PROFILES[os.environ.get("HYPOTHESIS_PROFILE", "default")]
