"""Notes that something was done which should happen again and again. Opens its own transaction."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import time

from django.db import DatabaseError, IntegrityError, InterfaceError, transaction
from django.utils import timezone

from convsessions.models import Heartbeat

BEAT_SECONDS = 15.0
"""Seconds between two notes of what is done all the time: of one process, and in the row."""

_last: dict[tuple[str, str], float] = {}
"""When this process last looked after a note, by its name and database; by time.monotonic."""


def beat(name: str, now: dt.datetime, *, using: str, fresh_for: float = 0.0) -> None:
    """Note that `name` was done `now`; a note of the last `fresh_for` seconds is left as it is."""
    rows = Heartbeat.objects.using(using).filter(pk=name)
    if rows.filter(beat_at__lte=now - dt.timedelta(seconds=fresh_for)).update(beat_at=now) or rows.exists():
        return
    # Suppressed: another process came first, a moment ago.
    with contextlib.suppress(IntegrityError), transaction.atomic(using=using):
        rows.create(name=name, beat_at=now)


def beat_now_and_then(name: str, *, using: str) -> None:
    """Note that `name` was just done, which happens so often that a statement each time would be a load.

    In a process, two notes are BEAT_SECONDS apart at least; a row that another process has just noted is only read.
    What the database answers to a note must not make what was done look failed.
    """
    now = time.monotonic()
    if now - _last.get((name, using), -math.inf) < BEAT_SECONDS:
        return
    _last[name, using] = now
    with contextlib.suppress(DatabaseError, InterfaceError):
        beat(name, timezone.now(), using=using, fresh_for=BEAT_SECONDS)
