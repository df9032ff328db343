"""What the lists can be filtered by."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rest_framework.request import Request

from convsessions.exceptions import InvalidInput
from convsessions.items import codec
from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import WriteKind, WriteState

from . import rows
from .parsing import one_of


def sessions(request: Request, found: QuerySet[Any]) -> QuerySet[Any]:
    """Those of `found` that the query asks for; deleted ones only where it asks for them."""
    found = found.filter(deleted_at__isnull=not boolean(request, "deleted"))
    key = request.query_params.get("key")
    if key is not None:
        # By its hash, since a collation may take other keys for the same; and no database is asked for U+0000.
        found = found.filter(key_hash=ConversationSession.hash_of_key(key))
    states = one_of(request, "state", rows.SessionState.values)
    if states:
        found = found.filter(rows.in_states(states))
    attention = boolean(request, "needs_attention")
    if attention is not None:
        waiting = WriteIntent.objects.using(rows.alias()).needing_attention().order_by()
        of_them = {"pk__in": waiting.values("session")}
        found = found.filter(**of_them) if attention else found.exclude(**of_them)
    return _created(request, found)


def writes(request: Request, found: QuerySet[WriteIntent]) -> QuerySet[WriteIntent]:
    """Those of `found` that the query asks for."""
    states, kinds = one_of(request, "state", WriteState.values), one_of(request, "kind", WriteKind.values)
    found = found.filter(state__in=states) if states else found
    found = found.filter(kind__in=kinds) if kinds else found
    attention = boolean(request, "needs_attention")
    if attention is not None:
        found = found.filter(needs_attention=True) if attention else found.filter(needs_attention=None)
    key = request.query_params.get("idempotency_key")
    found = found if key is None else found.filter(idempotency_digest=codec.digest(key))
    return _created(request, found)


def boolean(request: Request, name: str) -> bool | None:
    """The query parameter `name`, None where it is not given. Raises InvalidInput unless it is true or false."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if text not in {"true", "false"}:
        raise InvalidInput(name, "choose true or false", code="invalid_choice")
    return text == "true"


def moment(request: Request, name: str) -> dt.datetime | None:
    """The query parameter `name` as Django represents moments. Raises InvalidInput unless it is an RFC 3339 time."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        given = parse_datetime(text)
        utc = given.astimezone(dt.UTC) if given and given.tzinfo and text.isascii() else None
        found = utc if utc is None or settings.USE_TZ else timezone.make_naive(utc)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise InvalidInput(name, "give a time with its offset, as in 2026-01-31T12:00:00Z")
    return found


def _created(request: Request, found: QuerySet[Any]) -> QuerySet[Any]:
    after, before = moment(request, "created_after"), moment(request, "created_before")
    found = found if after is None else found.filter(created_at__gt=after)
    return found if before is None else found.filter(created_at__lt=before)
