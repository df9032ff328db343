"""The addresses under ``sandbox/``, with which tests and demos steer the sandbox and look behind it.

Nobody is asked for a key here: they answer 404 unless ``settings.DEBUG`` or ``settings.CONVSESSIONS_SANDBOX_CONTROL``
is true, and never when the server was started with ``--no-control``. A site that others can reach must leave them off.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from . import faults, store
from .behaviour import prepare_batch
from .errors import ApiError, invalid, unknown_url, wrong_method
from .latency import set_latency
from .models import SandboxConversation, SandboxFault, SandboxItem, SandboxRequest, SandboxSettings
from .replies import error_reply, json_reply

ENVIRON_KEY = "convsessions.sandbox.control"
"""WSGI environ key with which a server can take the control addresses away (False)."""

View = Callable[..., HttpResponse]


def _allowed(request: HttpRequest) -> bool:
    wanted = settings.DEBUG or getattr(settings, "CONVSESSIONS_SANDBOX_CONTROL", False)
    return bool(wanted and request.META.get(ENVIRON_KEY, True))


def _control(view: Callable[..., Any]) -> View:
    """Answers what `view` returns as JSON, or 404 where control is not allowed."""

    @csrf_exempt
    @transaction.non_atomic_requests
    @functools.wraps(view)
    def guarded(request: HttpRequest, **ids: str) -> HttpResponse:
        if not _allowed(request):
            return error_reply(unknown_url())
        try:
            return json_reply(view(request, **ids))
        except ApiError as error:
            return error_reply(error)

    return guarded


@_control
def requests(request: HttpRequest) -> list[dict[str, Any]]:
    """GET ``?conversation=``: the log, oldest first; times are seconds since 1970."""
    _only(request, "GET")
    rows = SandboxRequest.objects.all()
    if conversation := request.GET.get("conversation"):
        rows = rows.filter(conversation=conversation)
    return [row.as_json() for row in rows]


@_control
def fault_supply(request: HttpRequest) -> Any:
    """POST an object with `kind` and its options; GET the list; DELETE them all."""
    _only(request, "GET", "POST", "DELETE")
    if request.method == "DELETE":
        faults.clear_faults()
    if request.method == "POST":
        return _set_fault(_payload(request))
    return [fault.as_json() for fault in SandboxFault.objects.all()]


@_control
def sandbox_settings(request: HttpRequest) -> dict[str, float]:
    """POST ``{"latency": seconds}``."""
    _only(request, "POST")
    latency = _payload(request).get("latency", 0)
    if not isinstance(latency, int | float) or not 0 <= latency < 3600:
        raise invalid("invalid_type", "latency", "latency must be a number of seconds.")
    set_latency(latency)
    return {"latency": latency}


@_control
def reset(request: HttpRequest) -> dict[str, bool]:
    """POST: empties all tables of the sandbox."""
    _only(request, "POST")
    for model in (SandboxFault, SandboxSettings, SandboxRequest, SandboxConversation, SandboxItem):
        model.objects.all().delete()
    return {"reset": True}


@_control
def conversation(request: HttpRequest, conversation_id: str) -> dict[str, Any]:
    """GET: all items as stored, nothing hidden and not in pages, also of a deleted conversation."""
    _only(request, "GET")
    return store.everything(conversation_id)


@_control
def foreign_items(request: HttpRequest, conversation_id: str) -> dict[str, Any]:
    """POST ``{"items": [...]}``: appends as a foreign writer would, outside the log and without faults."""
    _only(request, "POST")
    return {"data": store.append(conversation_id, prepare_batch(_payload(request).get("items")))}


def _set_fault(payload: dict[str, Any]) -> dict[str, Any]:
    try:
        return faults.set_fault(**payload).as_json()
    except (TypeError, ValueError) as error:
        raise invalid("invalid_value", None, str(error)) from error


def _only(request: HttpRequest, *methods: str) -> None:
    if request.method not in methods:
        raise wrong_method()


def _payload(request: HttpRequest) -> dict[str, Any]:
    try:
        payload = json.loads(request.read() or b"{}")
    except ValueError as error:
        raise invalid("invalid_json", None, "The body is not valid JSON.") from error
    if not isinstance(payload, dict):
        raise invalid("invalid_type", None, "The body must be an object.")
    return payload
