"""Conditional requests (RFC 9110 §13): two clients that change one session do not undo what the other has not seen."""

from __future__ import annotations

from typing import Final

from django.utils.http import parse_etags
from rest_framework.request import Request

from convsessions.items import codec
from convsessions.models import ConversationSession

NO_VERSION: Final = -1
"""A version that no session has."""


def etag(session: ConversationSession) -> str:
    """The strong entity tag of a session: another one after every change of it, of its history or of its writes."""
    # The owner is the one thing in the representation that changes without the journal: when their account goes.
    return f'"{codec.digest(f"{session.pk} {session.version} {session.owner_id}")[:32]}"'


def version_wanted(request: Request, session: ConversationSession) -> int | None:
    """The version that ``If-Match`` asks for, for the check under the session's lock; None where any will do.

    `session`: as the request found it.
    """
    tags = _tags(request, "If-Match")
    if tags is None or tags == ["*"]:
        return None
    return session.version if etag(session) in tags else NO_VERSION


def is_known(request: Request, session: ConversationSession) -> bool:
    """Whether the client has this representation already, as ``If-None-Match`` says (weak comparison)."""
    tags = _tags(request, "If-None-Match")
    return tags is not None and (tags == ["*"] or etag(session) in {tag.removeprefix("W/") for tag in tags})


def _tags(request: Request, header: str) -> list[str] | None:
    text = request.headers.get(header)
    return None if text is None else parse_etags(text)
