"""Errors as RFC 9457 problem details, with a stable `code`.

Only the views of this API use the handler; the host's EXCEPTION_HANDLER is not touched. Whatever has no row here goes
on to the host's own handling of crashes.
"""

from __future__ import annotations

import http
import math
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from django.http.request import UnreadablePostError
from rest_framework import exceptions as drf
from rest_framework.response import Response

from convsessions.exceptions import (
    Conflict,
    ContentUnreadable,
    ConversationTaken,
    EvidenceChanged,
    IdempotencyConflict,
    IllegalMove,
    InvalidInput,
    KeyTaken,
    RemoteReadFailed,
    SessionChanged,
    SessionDeleted,
    SessionNotFound,
    WriteNotFound,
)

CONTENT_TYPE = "application/problem+json"
TOO_MUCH = frozenset({"too_large", "too_many_items"})
"""Codes of InvalidItem that are a matter of size."""

BY_EXCEPTION: dict[type[Exception], tuple[int, str]] = {
    SessionNotFound: (404, "session_not_found"),
    WriteNotFound: (404, "write_not_found"),
    IdempotencyConflict: (422, "idempotency_conflict"),
    KeyTaken: (409, "key_taken"),
    ConversationTaken: (409, "conversation_taken"),
    EvidenceChanged: (409, "evidence_changed"),
    SessionDeleted: (409, "session_deleted"),
    SessionChanged: (412, "precondition_failed"),
    IllegalMove: (409, "illegal_move"),
}

TIMEOUT_MARKS = ("timeout", "deadline")


class Refusal(drf.APIException):
    """The API itself refuses a request; nothing was recorded. `field`: the path of what is wrong with the body."""

    def __init__(self, status: int, code: str, detail: str, *, field: str = "") -> None:
        super().__init__(detail, code)
        self.status_code, self.field = status, field


def handle(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """The problem that `error` is, or None.

    Nothing needs to be rolled back: every write of the journal is a transaction, or a savepoint, of its own.
    """
    error = _as_drf(error)
    if isinstance(error, drf.APIException):
        return _of_drf(error)
    if isinstance(error, InvalidInput):
        return problem(413 if error.code in TOO_MUCH else 422, error.code, error.problem, field=error.field)
    if isinstance(error, RemoteReadFailed):
        return _of_failed_read(error)
    if isinstance(error, ContentUnreadable):
        return problem(503, "content_unreadable", f"{error}; the site's operators have to put a key back.")
    if type(error) in BY_EXCEPTION:
        return problem(*BY_EXCEPTION[type(error)], str(error))
    return problem(409, "conflict", str(error)) if isinstance(error, Conflict) else None


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    field: str = "",
    errors: list[dict[str, str]] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """A response in the one shape of errors. `field`: path in the body, or the name of a parameter or header."""
    body: dict[str, Any] = {"type": "about:blank", "title": http.HTTPStatus(status).phrase, "status": status}
    body |= {"detail": detail, "code": code}
    body |= {"field": field} if field else {}
    body |= {"errors": errors} if errors else {}
    return Response(body, status=status, headers=headers, content_type=CONTENT_TYPE)


def retry_after(seconds: float | None) -> dict[str, str]:
    """The header for a number of seconds, whole ones and not too few."""
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}


def _as_drf(error: Exception) -> Exception:
    """Django's own exceptions as those of DRF; their texts are not repeated, for they may name rows and paths."""
    if isinstance(error, Http404):
        return drf.NotFound()
    if isinstance(error, PermissionDenied):
        return drf.PermissionDenied()
    if isinstance(error, RequestDataTooBig):
        return Refusal(413, "body_too_large", "The request body is too large.")
    if isinstance(error, UnreadablePostError):
        return Refusal(400, "body_unreadable", "The request body could not be read to its end.")
    return error


def _of_drf(error: drf.APIException) -> Response:
    headers = retry_after(getattr(error, "wait", None))
    challenge = getattr(error, "auth_header", None)
    if challenge:
        headers["WWW-Authenticate"] = challenge
    details = list(_flattened(error.detail))
    if len(details) == 1 and not details[0]["field"]:
        detail, code, errors = details[0]["detail"], details[0]["code"], None
    else:
        detail, code, errors = str(error.default_detail), str(error.default_code), details
    status = 422 if isinstance(error, drf.ValidationError) else error.status_code
    return problem(status, code, detail, field=getattr(error, "field", ""), errors=errors, headers=headers)


def _flattened(detail: Any, path: str = "") -> Iterator[dict[str, str]]:
    if isinstance(detail, Mapping):
        for name, below in detail.items():
            yield from _flattened(below, f"{path}.{name}" if path else str(name))
    elif isinstance(detail, list | tuple):
        for below in detail:
            yield from _flattened(below, path)
    else:
        yield {"field": path, "code": str(getattr(detail, "code", "invalid")), "detail": str(detail)}


def _of_failed_read(error: RemoteReadFailed) -> Response:
    """502: the API, or the site's key for it, is at fault; 503: it asks for patience; 504: no answer in time."""
    headers = retry_after(error.retry_after)
    if error.status in {429, 503}:
        return problem(503, "upstream_unavailable", str(error), headers=headers or {"Retry-After": "1"})
    if error.status == 404:
        return problem(502, "conversation_missing", str(error))
    if error.status is None and any(mark in error.code.lower() for mark in TIMEOUT_MARKS):
        return problem(504, "upstream_timeout", str(error), headers=headers)
    return problem(502, "upstream_failed", str(error), headers=headers)
