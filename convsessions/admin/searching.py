"""Search by what an operator has at hand: an exact id from a log or a ticket, or a part of a session's key."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import Q, QuerySet

from convsessions.models import ConversationSession, RequestAttempt

MOST_FOUND = 200
"""Sessions and requests that one search follows."""


def search_writes(writes: QuerySet[Any], term: str) -> QuerySet[Any]:
    """Writes by their id, by a request id of theirs, or by their session as `search_sessions` finds it."""
    # Looked up first: with subqueries in an OR, a database would read all writes.
    requests = RequestAttempt.objects.filter(request_id=term).order_by().values_list("write_id", flat=True)
    sessions = search_sessions(ConversationSession.objects.all(), term).order_by().values_list("pk", flat=True)
    known = _uuid(term)
    write_ids = [*requests[:MOST_FOUND], *([known] if known else [])]
    return writes.filter(Q(pk__in=write_ids) | Q(session__in=list(sessions[:MOST_FOUND])))


def search_sessions(sessions: QuerySet[Any], term: str) -> QuerySet[Any]:
    """Sessions by their id, by their conversation's id, or by a part of their key."""
    found = Q(conversation_id=term) | Q(key__icontains=term)
    known = _uuid(term)
    return sessions.filter(found | Q(pk=known) if known else found)


def _uuid(term: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(term)
    except ValueError:
        return None
