"""The rows that the API reads, from the database to which the journal writes: a replica may be behind."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import router
from django.db.models import Count, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce

from convsessions.models import ConversationSession, Reconciliation, WriteChunk, WriteIntent
from convsessions.states import WriteState


def alias() -> str:
    """The database of the journal, as the host's routers say."""
    return router.db_for_write(ConversationSession)


def sessions() -> QuerySet[Any]:
    """Sessions, each with `open_writes`: how many of its writes are not settled."""
    still_open = WriteIntent.objects.open().filter(session=OuterRef("pk")).order_by()
    counted = still_open.values("session").annotate(number=Count("pk")).values("number")
    return ConversationSession.objects.using(alias()).annotate(open_writes=Coalesce(Subquery(counted), 0))


def writes() -> QuerySet[WriteIntent]:
    """Writes without content: `popped` is deferred."""
    return WriteIntent.objects.using(alias()).defer("popped")


def progress(write_id: uuid.UUID) -> WriteIntent:
    """A write with its session, chunks (without their payload) and reconciliations (without their evidence)."""
    chunks = WriteChunk.objects.using(alias()).defer("payload")
    reconciliations = Reconciliation.objects.using(alias()).defer("evidence")
    return (
        WriteIntent.objects.using(alias())
        .select_related("session")
        .prefetch_related(Prefetch("chunks", chunks), Prefetch("reconciliations", reconciliations))
        .get(pk=write_id)
    )


def is_blocked(session_id: uuid.UUID) -> bool:
    """Whether the session waits for an operator: an ambiguous write stands before everything later."""
    return WriteIntent.objects.using(alias()).filter(session_id=session_id, state=WriteState.AMBIGUOUS).exists()
