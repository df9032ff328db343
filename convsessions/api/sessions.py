"""Sessions: the list, one of them, and the comparison with the remote."""

from __future__ import annotations

import dataclasses
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from convsessions import operations

from . import rows
from .endpoint import Endpoint
from .linking import link
from .pagination import KeysetPage
from .parsing import fields_of
from .serializers import SessionSerializer

MAX_KEY = 255


class Sessions(Endpoint):
    def get(self, request: Request, **host: Any) -> Response:
        """The sessions that the user may see, newest first. `key`: only those with this key."""
        found = self.access.visible(rows.sessions())
        key = request.query_params.get("key")
        if key is not None:
            # A database may not even take what can be no key, such as U+0000.
            found = found.filter(key=key) if key.isprintable() and len(key) <= MAX_KEY else found.none()
        return KeysetPage(request, found, "created_at", "id").response(SessionSerializer)

    def post(self, request: Request, **host: Any) -> Response:
        """Record a session of the user. Its remote conversation is created with the first append."""
        session = operations.create_session(owner=self.access.owner(), **fields_of(request, ("key", "metadata")))
        headers = {"Location": link(request, "session", session_id=session.pk)}
        return Response(SessionSerializer(session).data, status=201, headers=headers)


class Session(Endpoint):
    def get(self, request: Request, session_id: str, **host: Any) -> Response:
        return Response(SessionSerializer(self.session(session_id)).data)


class Verify(Endpoint):
    def post(self, request: Request, session_id: str, **host: Any) -> Response:
        """Compare the journal with the remote history, which is read to its end; changes nothing. Ids of items."""
        session = self.session(session_id)
        fields_of(request)
        drift = operations.verify_session(session.pk)
        return Response({"intact": not drift, **dataclasses.asdict(drift)})
