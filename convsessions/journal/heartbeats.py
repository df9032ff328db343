"""Notes that something was done which should happen again and again. Opens its own transaction."""

from __future__ import annotations

import datetime as dt

from django.db import IntegrityError, transaction

from convsessions.models import Heartbeat


def beat(name: str, now: dt.datetime, *, using: str) -> None:
    """Note that `name` was done `now`."""
    rows = Heartbeat.objects.using(using)
    if rows.filter(pk=name).update(beat_at=now):
        return
    try:
        with transaction.atomic(using=using):
            rows.create(name=name, beat_at=now)
    except IntegrityError:  # another process came first, a moment ago
        pass
