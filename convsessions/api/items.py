"""The items of a session: read from the remote, and changed through the journal."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from convsessions import operations
from convsessions.exceptions import InvalidInput, RemoteReadFailed
from convsessions.models import ConversationSession

from . import rows
from .access import Act
from .endpoint import Endpoint
from .intent import how
from .parsing import fields_of, whole_number
from .problems import Refusal
from .waiting import answer

OPEN_WRITES, AMBIGUOUS_WRITES = "Convsessions-Open-Writes", "Convsessions-Ambiguous-Writes"
DEFAULT_ITEMS = 20


class Items(Endpoint):
    url_name = "items"

    def get(self, request: Request, session_id: str, **host: Any) -> Response:
        """A page of the remote history in the OpenAI list shape, or with `latest` the newest items in their order.

        Headers and fields tell how many writes were still open, and how many of them ambiguous, before it was read:
        the list may be without them.
        """
        session: Any = self.session(session_id, Act.READ_ITEMS)
        page = self._latest(request, session) if "latest" in request.query_params else self._page(request, session)
        page |= {"open_writes": session.open_writes, "ambiguous_writes": session.ambiguous_writes}
        headers = {OPEN_WRITES: str(session.open_writes), AMBIGUOUS_WRITES: str(session.ambiguous_writes)}
        return Response(page, headers=headers)

    def _latest(self, request: Request, session: ConversationSession) -> dict[str, Any]:
        for other in ("limit", "order", "after"):
            if other in request.query_params:
                raise InvalidInput(other, "does not go together with latest")
        return operations.get_latest_items(session.pk, whole_number(request, "latest", 0))

    def _page(self, request: Request, session: ConversationSession) -> dict[str, Any]:
        limit = whole_number(request, "limit", DEFAULT_ITEMS)
        order, after = request.query_params.get("order", "asc"), request.query_params.get("after")
        try:
            return operations.get_items(session.pk, limit=limit, order=order, after=after)
        except RemoteReadFailed as error:
            if after is None or error.status not in {400, 404}:
                raise
            # The API answers alike when the conversation is gone; without a cursor that shows as what it is.
            raise InvalidInput("after", "the conversation has no such item", code="item_not_found") from error

    def post(self, request: Request, session_id: str, **host: Any) -> Response:
        """Record an append of ``{"items": [...], "on_refusal": "stop"}``; ``skip`` goes on without a refused item."""
        session = self.session(session_id, Act.WRITE)
        fields = fields_of(request, ("items", "on_refusal"))
        if "items" not in fields:
            raise InvalidInput("items", "is missing", code="missing")
        write, is_new = operations.record_append(session.pk, **fields, **how(self, session))
        return answer(request, write, self.access, replayed=not is_new)


class Pop(Endpoint):
    url_name = "pop"

    def post(self, request: Request, session_id: str, **host: Any) -> Response:
        """Record the removal of the newest item. Behind an ambiguous write nobody knows which that is: refused."""
        session = self.session(session_id, Act.WRITE)
        fields_of(request)
        with transaction.atomic(using=rows.alias()):
            write, is_new = operations.record_pop(session.pk, **how(self, session))
            # Under the lock of the session, and after a replay was told from a new request.
            if is_new and rows.is_blocked(session.pk):
                raise Refusal(409, "session_blocked", "A write of this session waits for an operator's decision.")
        return answer(request, write, self.access, replayed=not is_new)


class Clear(Endpoint):
    url_name = "clear"

    def post(self, request: Request, session_id: str, **host: Any) -> Response:
        """Record that the conversation is to be deleted; supersedes everything queued before it.

        With ``{"erase": true}`` every item is deleted first, for the API keeps those of a deleted conversation.
        """
        session = self.session(session_id, Act.WRITE)
        fields = fields_of(request, ("erase",))
        write, is_new = operations.record_clear(session.pk, **fields, **how(self, session))
        return answer(request, write, self.access, replayed=not is_new)
