"""JSON replies outside the log."""

from __future__ import annotations

import secrets
from typing import Any

from django.http import HttpResponse

from convsessions.items import codec

from .errors import ApiError


def json_reply(value: Any, status: int = 200) -> HttpResponse:
    """`value` as ASCII JSON, with the ``x-request-id`` that every answer has (recorded)."""
    response = HttpResponse(codec.encode(value), content_type="application/json", status=status)
    response["x-request-id"] = f"req_{secrets.token_hex(16)}"
    return response


def error_reply(error: ApiError) -> HttpResponse:
    return json_reply(error.body, error.status)
