"""The items of a session: read from the remote, and changed through the journal."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from convsessions import operations
from convsessions.exceptions import InvalidInput, RemoteReadFailed

from . import rows
from .access import Act
from .endpoint import Endpoint
from .parsing import fields_of, whole_number
from .problems import Refusal
from .waiting import answer

OPEN_WRITES = "Convsessions-Open-Writes"
DEFAULT_ITEMS = 20


class Items(Endpoint):
    def get(self, request: Request, session_id: str, **host: Any) -> Response:
        """A page of the remote history in the OpenAI list shape.

        The header tells how many writes were still open before it was read, so that the list may be without them.
        """
        session = self.session(session_id, Act.READ_ITEMS)
        limit = whole_number(request, "limit", DEFAULT_ITEMS)
        order, after = request.query_params.get("order", "asc"), request.query_params.get("after")
        try:
            page = operations.get_items(session.pk, limit=limit, order=order, after=after)
        except RemoteReadFailed as error:
            if after is None or error.status not in {400, 404}:
                raise
            # The API answers alike when the conversation is gone; without a cursor that shows as what it is.
            raise InvalidInput("after", "the conversation has no such item", code="item_not_found") from error
        return Response(page, headers={OPEN_WRITES: str(session.open_writes)})  # type: ignore[attr-defined]

    def post(self, request: Request, session_id: str, **host: Any) -> Response:
        """Record an append of ``{"items": [...]}``."""
        session = self.session(session_id, Act.WRITE)
        fields = fields_of(request, ("items",))
        if "items" not in fields:
            raise InvalidInput("items", "is missing", code="missing")
        write, is_new = operations.record_append(
            session.pk, fields["items"], author=self.access.author, idempotency_key=idempotency_key(request)
        )
        return answer(request, write, self.access, replayed=not is_new)


class Pop(Endpoint):
    def post(self, request: Request, session_id: str, **host: Any) -> Response:
        """Record the removal of the newest item. Behind an ambiguous write nobody knows which that is: refused."""
        session = self.session(session_id, Act.WRITE)
        fields_of(request)
        with transaction.atomic(using=rows.alias()):
            write, is_new = operations.record_pop(
                session.pk, author=self.access.author, idempotency_key=idempotency_key(request)
            )
            # Under the lock of the session, and after a replay was told from a new request.
            if is_new and rows.is_blocked(session.pk):
                raise Refusal(409, "session_blocked", "A write of this session waits for an operator's decision.")
        return answer(request, write, self.access, replayed=not is_new)


class Clear(Endpoint):
    def post(self, request: Request, session_id: str, **host: Any) -> Response:
        """Record that the conversation is to be deleted; supersedes everything queued before it."""
        session = self.session(session_id, Act.WRITE)
        fields_of(request)
        write, is_new = operations.record_clear(
            session.pk, author=self.access.author, idempotency_key=idempotency_key(request)
        )
        return answer(request, write, self.access, replayed=not is_new)


def idempotency_key(request: Request) -> str | None:
    """The key as the client wrote it: quotes, where there are any, are a part of it."""
    return request.headers.get("Idempotency-Key")
