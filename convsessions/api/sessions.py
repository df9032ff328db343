"""Sessions: the list, one of them, and the comparison with the remote."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from convsessions import operations
from convsessions.exceptions import InvalidInput
from convsessions.models import WriteIntent

from . import filters, rows
from .access import Act, SessionAccess
from .endpoint import Endpoint
from .intent import how, idempotency_key
from .linking import link
from .pagination import KeysetPage
from .parsing import fields_of
from .preconditions import etag, is_known
from .serializers import SessionSerializer
from .waiting import answer, later, represent, wait


class Sessions(Endpoint):
    url_name = "sessions"

    def get(self, request: Request, **host: Any) -> Response:
        """The sessions that the user may see, newest first; deleted ones only on demand."""
        found = filters.sessions(request, self.access.visible(rows.sessions()))
        return KeysetPage(request, found, "created_at", "id").response(SessionSerializer)

    def post(self, request: Request, **host: Any) -> Response:
        """Record a session of the user, and with it its first items.

        Its remote conversation is created with the first append, unless it adopts one that exists.
        """
        owner = self.access.owner()
        fields = fields_of(request, ("key", "metadata", "conversation_id", "items"))
        if fields.get("conversation_id") is not None:
            self._check_adoption(fields["conversation_id"])
        if "items" in fields and fields["items"] is None:
            raise InvalidInput("items", "must be a list", code="not_a_list")
        opened = operations.open_session(
            owner=owner, author=self.access.author, idempotency_key=idempotency_key(request), **fields
        )
        headers = {"Location": link(request, "session", session_id=opened.session.pk)}
        return _changed(request, opened, self.access, headers, status=201)

    def _check_adoption(self, conversation_id: Any) -> None:
        if isinstance(conversation_id, str) and not self.access.may_adopt(conversation_id):
            raise PermissionDenied


class Session(Endpoint):
    url_name = "session"

    def get(self, request: Request, session_id: str, **host: Any) -> Response:
        """One session. With ``If-None-Match`` 304 when nothing has changed."""
        session = self.session(session_id)
        headers = {"ETag": etag(session)}
        if is_known(request, session):
            return Response(status=304, headers=headers)
        return Response(SessionSerializer(session).data, headers=headers)

    def patch(self, request: Request, session_id: str, **host: Any) -> Response:
        """Change the key, at once, and the metadata, which goes to the conversation as a write of the session."""
        session = self.session(session_id, Act.WRITE)
        fields = fields_of(request, ("key", "metadata"))
        changed = operations.update_session(session.pk, **fields, **how(self, session))
        if changed.write is None:
            return _changed(request, changed, self.access, {}, status=200)
        headers = {"Location": link(request, "write", write_id=changed.write.pk)}
        return _changed(request, changed, self.access, headers, status=202)

    def delete(self, request: Request, session_id: str, **host: Any) -> Response:
        """Delete the conversation, and refuse further writes. Everything recorded stays, and the key is free.

        With ``?erase=true`` every item is deleted first, and what the journal holds of them.
        """
        session = self.session(session_id, Act.WRITE)
        fields_of(request)
        erase = filters.boolean(request, "erase")
        write, is_new = operations.record_deletion(session.pk, erase=erase, **how(self, session))
        return answer(request, write, self.access, replayed=not is_new)


class Verify(Endpoint):
    url_name = "verify"

    def post(self, request: Request, session_id: str, **host: Any) -> Response:
        """Compare the journal with the remote history, which is read to its end; changes nothing. Ids of items."""
        session = self.session(session_id)
        fields_of(request)
        drift = operations.verify_session(session.pk)
        return Response({"intact": not drift, **dataclasses.asdict(drift)})


def _changed(
    request: Request, recorded: operations.Recorded, access: SessionAccess, headers: dict[str, str], *, status: int
) -> Response:
    """The session and the `write` that was recorded with it; 202 becomes 200 when that has settled."""
    shown: WriteIntent | None = None
    if recorded.write is not None:
        headers |= wait(request, recorded.write)
        shown = rows.progress(recorded.write.pk)
        status = 200 if shown.settled and status == 202 else status
        headers |= later(shown)
    if not recorded.is_new:
        headers["Idempotent-Replayed"] = "true"
    return _body(recorded.session.pk, shown and represent(shown, access), status, headers)


def _body(session_id: uuid.UUID, write: Any, status: int, headers: dict[str, str]) -> Response:
    session = rows.sessions().get(pk=session_id)
    headers["ETag"] = etag(session)
    return Response({**SessionSerializer(session).data, "write": write}, status=status, headers=headers)
