"""Cursor pagination by key: each page costs the same, and rows that come meanwhile shift nothing.

Unlike DRF's CursorPagination it orders by a unique key, so that any number of equal times is no trouble, and a cursor
is signed, so that none but our own values reach the database.
"""

from __future__ import annotations

from typing import Any

from django.core import signing
from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.utils.urls import replace_query_param

from convsessions.exceptions import InvalidInput

from .parsing import whole_number

DEFAULT_ROWS, MAX_ROWS = 50, 100


class KeysetPage:
    """One page of `rows`, newest first by `fields`, which together are unique. Query parameters: `limit`, `cursor`."""

    def __init__(self, request: Request, rows: QuerySet[Any], *fields: str) -> None:
        self._request, self._fields, self._model = request, fields, rows.model
        self._salt = f"convsessions.api.cursor.{rows.model._meta.label}"  # noqa: SLF001 - a public name, says Django
        limit = self._limit()
        backwards, position = self._cursor()
        if position:
            rows = rows.filter(_beyond(position, newer=backwards))
        ordering = [name if backwards else f"-{name}" for name in fields]
        found = list(rows.order_by(*ordering)[: limit + 1])
        more, self.rows = len(found) > limit, found[:limit]
        if backwards:
            self.rows.reverse()
        self._has_next = backwards or more
        self._has_previous = more if backwards else bool(position)

    def response(self, serializer: type[BaseSerializer[Any]]) -> Response:
        """The page as ``{"next", "previous", "results"}``; the links are absolute, or null."""
        next_link = self._link(self.rows[-1], backwards=False) if self.rows and self._has_next else None
        previous = self._link(self.rows[0], backwards=True) if self.rows and self._has_previous else None
        return Response({"next": next_link, "previous": previous, "results": serializer(self.rows, many=True).data})

    def _limit(self) -> int:
        limit = whole_number(self._request, "limit", DEFAULT_ROWS)
        if not 1 <= limit <= MAX_ROWS:
            raise InvalidInput("limit", f"give a whole number from 1 to {MAX_ROWS}")
        return limit

    def _cursor(self) -> tuple[bool, list[tuple[str, Any]]]:
        text = self._request.query_params.get("cursor")
        if text is None:
            return False, []
        try:
            backwards, *values = signing.loads(text, salt=self._salt)
        except signing.BadSignature:
            raise InvalidInput("cursor", "use one of the links that the list gave", code="invalid_cursor") from None
        meta = self._model._meta  # noqa: SLF001 - as above
        named = zip(self._fields, values, strict=True)
        return backwards, [(name, meta.get_field(name).to_python(value)) for name, value in named]

    def _link(self, row: Model, *, backwards: bool) -> str:
        fields = [row._meta.get_field(name) for name in self._fields]  # noqa: SLF001 - as above
        values = [field.value_to_string(row) for field in fields]  # type: ignore[union-attr]
        cursor = signing.dumps([backwards, *values], salt=self._salt)
        return replace_query_param(self._request.build_absolute_uri(), "cursor", cursor)


def _beyond(position: list[tuple[str, Any]], *, newer: bool) -> Q:
    """Rows after `position`: the first field that differs decides."""
    lookup = "gt" if newer else "lt"
    name, value = position[0]
    beyond = Q(**{f"{name}__{lookup}": value})
    if len(position) == 1:
        return beyond
    # The first condition says nothing new, but it is one that an index can begin at; no planner finds it in an OR.
    return Q(**{f"{name}__{lookup}e": value}) & (beyond | Q(**{name: value}) & _beyond(position[1:], newer=newer))
