"""Search by what an operator has at hand: an exact id from a log or a ticket, an owner's name, or a part of a key.

What is exact is looked up in indexes first; only when that finds nothing, keys are read for a part, and after them the
remote ids of chunks, which no index has.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from convsessions.models import ConversationSession, RequestAttempt, WriteChunk, WriteIntent

MOST_FOUND = 200
"""Sessions, requests and chunks that one search follows."""

REMOTE_ID = re.compile(r"[a-z]{2,12}_[A-Za-z0-9_-]{8,128}")
"""An item's id, as in "msg_68a1…"."""


def search_writes(writes: QuerySet[Any], term: str) -> QuerySet[Any]:
    """Writes by their id, by a request id or a remote item of theirs, or by what `search_sessions` takes."""
    # Looked up first: with subqueries in an OR, a database would read all writes.
    found, sessions = _writes_named(term), _sessions_named(term) | _sessions_owned_by(_users_named(term))
    if not found and not sessions:
        parts = ConversationSession.objects.filter(key__icontains=term).order_by("-updated_at")
        sessions = set(parts.values_list("pk", flat=True)[:MOST_FOUND])
    if not found and not sessions:
        found = _writes_with_item(term)
    return writes.filter(Q(pk__in=found) | Q(session__in=sessions))


def search_sessions(sessions: QuerySet[Any], term: str) -> QuerySet[Any]:
    """Sessions by their id, conversation, owner's name, key or a part of it, or by an id that `search_writes` takes."""
    named, owners = _sessions_named(term) or _sessions_of(_writes_named(term)), _users_named(term)
    if named or owners:
        return sessions.filter(Q(pk__in=named) | Q(owner__in=owners))
    by_part = sessions.filter(key__icontains=term)
    if REMOTE_ID.fullmatch(term) and not by_part.exists():
        return sessions.filter(pk__in=_sessions_of(_writes_with_item(term)))
    return by_part


def _sessions_named(term: str) -> set[Any]:
    exact = Q(conversation_id=term) | Q(key_hash=ConversationSession.hash_of_key(term))
    known = _uuid(term)
    rows = ConversationSession.objects.filter(exact | Q(pk=known) if known else exact).order_by()
    return set(rows.values_list("pk", flat=True)[:MOST_FOUND])


def _users_named(term: str) -> list[Any]:
    """By the whole name that they log in with. Users may be in another database, so that nothing can join them."""
    users = get_user_model()
    try:
        named = users._default_manager.filter(**{users.USERNAME_FIELD: term})  # noqa: SLF001 - documented
        return list(named.values_list("pk", flat=True)[:MOST_FOUND])
    except (ValueError, ValidationError):  # names of a kind of their own, which this is none of
        return []


def _sessions_owned_by(users: list[Any]) -> set[Any]:
    newest = ConversationSession.objects.filter(owner__in=users).order_by("-updated_at")
    return set(newest.values_list("pk", flat=True)[:MOST_FOUND])


def _writes_named(term: str) -> set[Any]:
    known = _uuid(term)
    if known:
        return {known}
    requests = RequestAttempt.objects.filter(request_id=term).order_by()
    return set(requests.values_list("write_id", flat=True)[:MOST_FOUND])


def _writes_with_item(term: str) -> set[Any]:
    """Reads all chunks, so only for what looks like the id of an item."""
    if not REMOTE_ID.fullmatch(term):
        return set()
    # With its quotes, as the JSON text has it: the id must be whole.
    chunks = WriteChunk.objects.filter(remote_ids__contains=f'"{term}"').order_by()
    popped = WriteIntent.objects.filter(target_id=term).order_by()
    return {
        *chunks.values_list("write_id", flat=True)[:MOST_FOUND],
        *popped.values_list("pk", flat=True)[:MOST_FOUND],
    }


def _sessions_of(write_ids: Collection[Any]) -> set[Any]:
    rows = WriteIntent.objects.filter(pk__in=write_ids).order_by()
    return set(rows.values_list("session_id", flat=True)) if write_ids else set()


def _uuid(term: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(term)
    except ValueError:
        return None
