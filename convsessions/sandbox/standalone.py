"""The sandbox alone: its urlconf, and a WSGI application without the site's middleware."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from django.core import signals
from django.core.handlers.wsgi import WSGIRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, include, path, resolve

from .errors import server_error, unknown_url
from .replies import error_reply

logger = logging.getLogger("convsessions.sandbox")

urlpatterns = [path("v1/", include("convsessions.sandbox.urls"))]


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Serves `urlpatterns`. No sessions, cookies or host checks: clients of an API bring none of these."""
    # As Django's own handler does, for its database connections live by these signals; `close` sends the other one.
    signals.request_started.send(sender=None, environ=environ)
    response = _respond(WSGIRequest(environ))
    start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
    return response


def _respond(request: WSGIRequest) -> HttpResponseBase:
    try:
        view, args, kwargs = resolve(request.path_info, urlconf=__name__)
        response: HttpResponseBase = view(request, *args, **kwargs)
    except Resolver404:
        response = error_reply(unknown_url())
    except Exception:
        logger.exception("the sandbox failed on %s", request.method)
        response = error_reply(server_error())
    if not response.streaming:
        response.headers.setdefault("Content-Length", str(len(response.content)))  # type: ignore[attr-defined]
    return response
