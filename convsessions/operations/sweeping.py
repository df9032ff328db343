"""Finding work that nobody is doing."""

from __future__ import annotations

import datetime as dt
import uuid

from django.utils import timezone

from convsessions.conf import conf
from convsessions.journal import heartbeats, recording
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, Heartbeat
from convsessions.remote import clock

SWEEP_BATCH = 1000
"""Sessions that are looked up at a time."""
SWEEP_SECONDS = 20.0
"""After so long a sweep begins no further batch; the next one goes on."""


def due_sessions() -> list[uuid.UUID]:
    """The sessions with work that nobody is doing, the longest waiting first: for delivery without a queue."""
    return list(ConversationSession.objects.using(alias()).due(timezone.now()).values_list("pk", flat=True))


def sweep() -> int:
    """Ring the doorbell of every session with work that nobody is doing, for SWEEP_SECONDS; returns how many.

    A lost doorbell, a rolled-back enqueue or a dead worker strands nothing: whatever is recorded is found here. A
    session is not rung again before another lease could have run out, so that a slow queue does not fill up.
    """
    using, now = alias(), timezone.now()
    due = ConversationSession.objects.using(using).due(now)
    again = now + dt.timedelta(seconds=max(60.0 * conf.SWEEP_MINUTES, conf.REQUEST_TIMEOUT + conf.LEASE_GRACE))
    heartbeats.beat(Heartbeat.SWEEP, now, using=using)
    rung, ends = 0, clock.now() + SWEEP_SECONDS
    while True:
        seen = list(due.values_list("pk", "wake_at")[:SWEEP_BATCH])
        number = sum(recording.postpone_wake(pk, seen=wake_at, until=again, using=using) for pk, wake_at in seen)
        rung += number
        # Of a batch of which none was rung, every session is locked by somebody who is at work on it.
        if not number or len(seen) < SWEEP_BATCH or clock.now() >= ends:
            return rung
