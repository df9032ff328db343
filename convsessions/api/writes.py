"""Writes: what became of them, and what their authors and operators may do about them."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from convsessions import operations
from convsessions.exceptions import InvalidInput

from . import filters, rows
from .access import Act
from .endpoint import Endpoint
from .pagination import KeysetPage
from .parsing import fields_of
from .serializers import WriteSummarySerializer
from .waiting import answer, progress


class SessionWrites(Endpoint):
    url_name = "session-writes"

    def get(self, request: Request, session_id: str, **host: Any) -> Response:
        """The writes of a session, newest first."""
        found = filters.writes(request, rows.writes().filter(session=self.session(session_id)))
        return KeysetPage(request, found, "sequence").response(WriteSummarySerializer)


class Write(Endpoint):
    url_name = "write"

    def get(self, request: Request, write_id: str, **host: Any) -> Response:
        return progress(request, self.write(write_id), self.access)


class Cancel(Endpoint):
    url_name = "cancel"

    def post(self, request: Request, write_id: str, **host: Any) -> Response:
        """Drop what of a write was not sent; what is in flight is settled first."""
        write = self.write(write_id, Act.CANCEL)
        fields_of(request)
        return answer(request, operations.cancel_write(write.pk, actor=self.access.author), self.access)


class Reconcile(Endpoint):
    url_name = "reconcile"

    def post(self, request: Request, write_id: str, **host: Any) -> Response:
        """Have an ambiguous write compared with the remote once more by a worker. ``{"reason"}``"""
        write = self.write(write_id, Act.RECONCILE)
        reason = _text(fields_of(request, ("reason",)), "reason")
        return answer(
            request, operations.reconcile_write(write.pk, actor=self.access.author, reason=reason), self.access
        )


class Resolve(Endpoint):
    url_name = "resolve"

    def get(self, request: Request, write_id: str, **host: Any) -> Response:
        """What the remote says now about an ambiguous write, what can be done, and the token of this evidence."""
        inspection = operations.inspect_write(self.write(write_id, Act.RESOLVE).pk)
        return Response(
            {
                "verdict": inspection.verdict,
                "resolutions": [resolution.value for resolution in inspection.possible],
                "findings": inspection.evidence,
                "evidence": inspection.token,
            }
        )

    def post(self, request: Request, write_id: str, **host: Any) -> Response:
        """Carry out a decision on the evidence that GET showed. ``{"resolution", "reason", "evidence"}``"""
        write = self.write(write_id, Act.RESOLVE)
        fields = fields_of(request, ("resolution", "reason", "evidence"))
        resolution, reason, evidence = (_text(fields, name) for name in ("resolution", "reason", "evidence"))
        resolved = operations.resolve_write(
            write.pk, resolution, reason=reason, actor=self.access.author, evidence=evidence
        )
        return answer(request, resolved, self.access)


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(name, "give a text", code="required")
    return value
