"""Finding work that nobody is doing."""

from __future__ import annotations

import datetime as dt
import uuid

from django.utils import timezone

from convsessions.conf import conf
from convsessions.journal import heartbeats, recording
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, Heartbeat

SWEEP_LIMIT = 1000
"""Sessions whose doorbell one sweep rings; the next sweep goes on."""


def due_sessions() -> list[uuid.UUID]:
    """The sessions with work that nobody is doing, the longest waiting first: for delivery without a queue."""
    return list(ConversationSession.objects.using(alias()).due(timezone.now()).values_list("pk", flat=True))


def sweep() -> int:
    """Ring the doorbell of every session with work that nobody is doing; returns how many.

    A lost doorbell, a rolled-back enqueue or a dead worker strands nothing: whatever is recorded is found here. A
    session is not rung again before another lease could have run out, so that a slow queue does not fill up.
    """
    using, now = alias(), timezone.now()
    due = ConversationSession.objects.using(using).due(now)
    again = now + dt.timedelta(seconds=max(60.0 * conf.SWEEP_MINUTES, conf.REQUEST_TIMEOUT + conf.LEASE_GRACE))
    heartbeats.beat(Heartbeat.SWEEP, now, using=using)
    seen = list(due.values_list("pk", "wake_at")[:SWEEP_LIMIT])
    return sum(recording.postpone_wake(pk, seen=wake_at, until=again, using=using) for pk, wake_at in seen)
