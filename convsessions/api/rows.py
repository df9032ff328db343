"""The rows that the API reads, from the database to which the journal writes: a replica may be behind."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import router
from django.db.models import Count, OuterRef, Prefetch, Q, QuerySet, Subquery, TextChoices
from django.db.models.functions import Coalesce

from convsessions.models import ConversationSession, Reconciliation, WriteChunk, WriteIntent
from convsessions.states import WriteState


class SessionState(TextChoices):
    """What a session is doing, as far as its writes tell."""

    IDLE = "idle"
    """Every write is settled."""
    BUSY = "busy"
    """Writes are open."""
    BLOCKED = "blocked"
    """An ambiguous write waits for an operator, and what was recorded after it waits behind it."""


def alias() -> str:
    """The database of the journal, as the host's routers say."""
    return router.db_for_write(ConversationSession)


def sessions() -> QuerySet[Any]:
    """Sessions, each with the numbers of its `open_writes`, of the `ambiguous_writes` and `urgent_writes` of them."""
    return ConversationSession.objects.using(alias()).annotate(
        open_writes=_number_of_open(),
        ambiguous_writes=_number_of_open(state=WriteState.AMBIGUOUS),
        urgent_writes=_number_of_open(needs_attention=True),
    )


def _number_of_open(**restriction: Any) -> Coalesce:
    still_open = WriteIntent.objects.open().filter(session=OuterRef("pk"), **restriction).order_by()
    return Coalesce(Subquery(still_open.values("session").annotate(number=Count("pk")).values("number")), 0)


def in_states(states: list[str]) -> Q:
    """The condition for sessions in one of these states."""
    journal = WriteIntent.objects.using(alias()).order_by()
    is_open = Q(pk__in=journal.open().values("session"))
    is_blocked = Q(pk__in=journal.needing_attention().filter(state=WriteState.AMBIGUOUS).values("session"))
    of_state = {SessionState.IDLE: ~is_open, SessionState.BUSY: is_open & ~is_blocked, SessionState.BLOCKED: is_blocked}
    condition = Q(pk__in=[])
    for state in states:
        condition |= of_state[SessionState(state)]
    return condition


def writes() -> QuerySet[WriteIntent]:
    """Writes without content: `popped` is deferred."""
    return WriteIntent.objects.using(alias()).defer("popped")


def progress(write_id: uuid.UUID) -> WriteIntent:
    """A write with its session, chunks (without their payload) and reconciliations (without their evidence)."""
    chunks = WriteChunk.objects.using(alias()).defer("payload", "original")
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
