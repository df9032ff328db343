"""The wait before each request: the row if there is one, else what the server was started with."""

from __future__ import annotations

from django.http import HttpRequest

from .models import SandboxSettings

ENVIRON_KEY = "convsessions.sandbox.latency"
"""WSGI environ key of the seconds given to ``manage.py sandbox --latency``."""


def current_latency(request: HttpRequest) -> float:
    """Seconds that each request to the API waits before it is looked at."""
    row = SandboxSettings.objects.filter(pk=1).values_list("latency", flat=True).first()
    return float(request.META.get(ENVIRON_KEY, 0.0)) if row is None else row


def set_latency(seconds: float) -> None:
    """For all processes of the sandbox, until it is set again or everything is reset."""
    SandboxSettings.objects.update_or_create(pk=1, defaults={"latency": seconds})
