"""Removing people's content from the journal. What identifies it, digests and ids, stays."""

from __future__ import annotations

import datetime as dt

from django.db.models import QuerySet

from convsessions.models import WriteChunk, WriteIntent
from convsessions.states import OPEN_STATES


def erase_content(clear: WriteIntent, now: dt.datetime, *, using: str) -> None:
    """Remove the content of every settled write that was recorded before `clear`.

    Requires the caller's transaction and the lock of the session.
    """
    before = WriteIntent.objects.using(using).filter(session_id=clear.session_id, sequence__lt=clear.sequence)
    empty(before.exclude(state__in=OPEN_STATES).filter(payload_purged_at__isnull=True), now, using=using)


def empty(writes: QuerySet[WriteIntent], now: dt.datetime, *, using: str) -> int:
    """Remove the content of `writes`, which are settled and not yet purged; returns how many they are.

    Requires the caller's transaction and the lock of their session.
    """
    ids = list(writes.order_by().values_list("pk", flat=True))
    for first in range(0, len(ids), 500):
        some = ids[first : first + 500]
        WriteChunk.objects.using(using).filter(write__in=some).order_by().update(payload="", original=None)
        WriteIntent.objects.using(using).filter(pk__in=some).update(popped=None, payload_purged_at=now)
    return len(ids)
