"""Ends a connection without a reply, or in the middle of one, on whatever server runs the view."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

HOOK = "convsessions.sandbox.drop"
"""WSGI environ key of a callable without arguments that ends the connection. `server` puts it there."""


def vanish(environ: dict[str, Any], sent_before: bytes = b"") -> Iterator[bytes]:
    """A response body: sends `sent_before`, if any, then ends the connection.

    Raised from a body, a ConnectionAbortedError makes wsgiref (also Django's runserver) give up without a word more,
    and other servers close: nobody has answered yet, so there is nothing left to keep alive.
    """
    if sent_before:
        yield sent_before
    _hang_up(environ)


def _hang_up(environ: dict[str, Any]) -> NoReturn:
    if hook := environ.get(HOOK):
        hook()
    elif connection := environ.get("gunicorn.socket") or _socket_of_wsgiref(environ):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError


def _socket_of_wsgiref(environ: dict[str, Any]) -> Any:
    """The socket under Django's own server, which keeps it behind its stream of the request's body; or None."""
    read = getattr(environ.get("wsgi.input"), "_read", None)
    raw = getattr(getattr(read, "__self__", None), "raw", None)
    return getattr(raw, "_sock", None)
