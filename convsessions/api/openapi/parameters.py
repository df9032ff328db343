"""Headers and queries, of requests and of answers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from convsessions.api.items import AMBIGUOUS_WRITES, DEFAULT_ITEMS, OPEN_WRITES
from convsessions.api.pagination import DEFAULT_ROWS, MAX_ROWS
from convsessions.api.rows import SessionState
from convsessions.operations import MAX_LATEST
from convsessions.states import WriteKind, WriteState
from convsessions.values import MAX_KEY

Parameters = tuple[OpenApiParameter, ...]


def query(name: str, description: str, kind: Any = OpenApiTypes.STR, **options: Any) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, description=description, **options)


def header(name: str, description: str, kind: Any = OpenApiTypes.STR, **options: Any) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.HEADER, description=description, **options)


def number(low: int, high: int, default: int | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer", "minimum": low, "maximum": high}
    return schema if default is None else {**schema, "default": default}


def several(values: list[str]) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "enum": values}}


def told(name: str, description: str, *statuses: int, required: bool = False) -> OpenApiParameter:
    """A header of the answers with one of these statuses."""
    return header(name, description, response=list(statuses), required=required)


SESSION_ID = OpenApiParameter("session_id", OpenApiTypes.UUID, OpenApiParameter.PATH)
WRITE_ID = OpenApiParameter("write_id", OpenApiTypes.UUID, OpenApiParameter.PATH)

PAGE = (
    query("limit", "rows a page", number(1, MAX_ROWS, DEFAULT_ROWS)),
    query("cursor", "where the page begins: from `next` or `previous` of another one"),
)
CREATED = (
    query("created_after", "only what was recorded after this time", OpenApiTypes.DATETIME),
    query("created_before", "only what was recorded before this time", OpenApiTypes.DATETIME),
)
ATTENTION = query("needs_attention", "only what waits for a person, or only what does not", OpenApiTypes.BOOL)
SESSION_FILTERS = (
    query("key", "only sessions with exactly this key"),
    query("state", "only sessions in one of these states", several(SessionState.values)),
    ATTENTION,
    query("deleted", "deleted sessions instead of the others", OpenApiTypes.BOOL),
    *CREATED,
)
WRITE_FILTERS = (
    query("state", "only writes in one of these states", several(WriteState.values)),
    query("kind", "only writes of one of these kinds", several(WriteKind.values)),
    query("idempotency_key", "only the write that was recorded with this key"),
    ATTENTION,
    *CREATED,
)
HISTORY = (
    query("limit", "items a page", number(1, 100, DEFAULT_ITEMS)),
    query("order", "`asc`: the oldest first", {"type": "string", "enum": ["asc", "desc"], "default": "asc"}),
    query("after", "the id of an item, exclusive", {"type": "string", "minLength": 1, "maxLength": 128}),
    query(
        "latest", "instead of all these: so many of the newest items, the oldest of them first", number(1, MAX_LATEST)
    ),
)

ERASE = query("erase", "whether every item is deleted before the conversation", OpenApiTypes.BOOL)

PREFER = header("Prefer", "`wait=N`: wait up to N seconds for the write to settle (RFC 7240)")
REPEATABLE = header(
    "Idempotency-Key",
    "a second request with the same key and body is answered with what the first one recorded",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY},
)
IF_MATCH = header("If-Match", "only if the session still has this `ETag`; 412 otherwise")
IF_NONE_MATCH = header("If-None-Match", "304 if the session still has this `ETag`")
WRITING = (PREFER, REPEATABLE, IF_MATCH)

LATER = "seconds after which to ask again"
WAITED = told("Preference-Applied", "what of `Prefer` was heeded", 200, 201, 202)
REPLAYED = told("Idempotent-Replayed", "`true`: recorded by an earlier request", 200, 201, 202)
WRITE_HEADERS = (
    told("Location", "the write", 200, 201, 202, required=True),
    told("Retry-After", LATER, 202, required=True),
    WAITED,
    REPLAYED,
)
ETAG = told("ETag", "changes with the session, its history and its writes", 200, 201, 202, 304, required=True)
PATIENCE = told("Retry-After", LATER, 429, 503)
CHALLENGE = told("WWW-Authenticate", "how to authenticate", 401)
BEHIND = (
    told(OPEN_WRITES, "writes that the list may be without", 200, required=True),
    told(AMBIGUOUS_WRITES, "those of them that wait for an operator", 200, required=True),
)
