"""What the headers of a writing request say about it, whatever it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from rest_framework.request import Request

from convsessions.models import ConversationSession

from .preconditions import version_wanted

if TYPE_CHECKING:
    from .endpoint import Endpoint


class How(TypedDict):
    author: Any
    idempotency_key: str | None
    if_version: int | None


def how(view: Endpoint, session: ConversationSession) -> How:
    """Who writes to `session`, as a repetition of what, and in which version they have seen it."""
    return How(
        author=view.access.author,
        idempotency_key=idempotency_key(view.request),
        if_version=version_wanted(view.request, session),
    )


def idempotency_key(request: Request) -> str | None:
    """The key as the client wrote it: quotes, where there are any, are a part of it."""
    return request.headers.get("Idempotency-Key")
