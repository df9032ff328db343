"""Retention: removing the content of writes that settled long ago, a few at a time."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence

from django.db import transaction
from django.db.models import F, Q, QuerySet

from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import OPEN_STATES, WriteState

from .erasing import empty
from .locking import lock_session


def purgeable(before: dt.datetime, *, refused: bool, using: str) -> QuerySet[WriteIntent]:
    """Writes that settled before this time and still have their content.

    `refused`: also those that may still be tried again, which needs their content.
    """
    # Not by `is_open`: with the states as listed, what the index `convsessions_retention` finds is all there is.
    settled = WriteIntent.objects.using(using).exclude(state__in=OPEN_STATES)
    writes = settled.filter(payload_purged_at__isnull=True, settled_at__lte=before)
    return writes if refused else writes.exclude(_may_be_tried_again())


def kept(before: dt.datetime, *, using: str) -> QuerySet[WriteIntent]:
    """Refused writes that would be purged if they could not be tried again."""
    return purgeable(before, refused=True, using=using).filter(_may_be_tried_again())


def _may_be_tried_again() -> Q:
    """What `recording.retry` demands of a refused write."""
    begun_now = Q(generation__isnull=True) | Q(generation=F("session__generation"))
    return Q(begun_now, state=WriteState.REFUSED, session__deleted_at__isnull=True)


def purge(
    session_id: uuid.UUID, write_ids: Sequence[uuid.UUID], before: dt.datetime, *, refused: bool, using: str
) -> int:
    """Remove the content of those of the writes of one session that are `purgeable` still; returns how many.

    Opens its own transaction. The session's lock holds off an operator who is about to have one tried again.
    """
    with transaction.atomic(using=using):
        locked, now = lock_session(session_id, using=using)
        writes = purgeable(before, refused=refused, using=using).filter(session_id=session_id, pk__in=write_ids)
        number = empty(writes, now, using=using)
        # What the API shows of them is another now. It is no activity, so `updated_at` stays.
        ConversationSession.objects.using(using).filter(pk=locked.pk).update(version=F("version") + 1)
    return number
