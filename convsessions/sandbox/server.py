"""A threaded HTTP/1.1 server with keep-alive, whose connections a view can end without a reply."""

from __future__ import annotations

import socket
import socketserver
from contextlib import suppress
from typing import Any, cast

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler, is_broken_pipe_error

from . import connection, control, latency
from .standalone import application


class SandboxRequestHandler(WSGIRequestHandler):
    # A reply leaves in one packet, at once: without Nagle's wait, and written when it is complete.
    disable_nagle_algorithm = True
    wbufsize = -1

    def get_environ(self) -> dict[str, Any]:
        return {**super().get_environ(), connection.HOOK: self.drop}

    def drop(self) -> None:
        """Ends the connection now; the client reads an end of file."""
        self.close_connection = True
        with suppress(OSError):
            cast("socket.socket", self.connection).shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the standard library
        """Nothing: requests are in the table, and a terminal is slow."""


class SandboxServer(ThreadedWSGIServer):
    request_queue_size = 128

    def __init__(self, host: str, port: int, *, seconds: float = 0.0, with_control: bool = True) -> None:
        """Binds at once; port 0 takes a free one. `seconds`: the latency of every request."""
        super().__init__((host, port), SandboxRequestHandler, ipv6=":" in host)
        self.base_environ[latency.ENVIRON_KEY] = seconds
        self.base_environ[control.ENVIRON_KEY] = with_control
        self.set_app(application)

    def server_bind(self) -> None:
        # Not the parent's: it asks DNS for the name of the address, which can take seconds.
        socketserver.TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()

    @property
    def url(self) -> str:
        """The base URL for clients."""
        host = f"[{self.server_name}]" if ":" in self.server_name else self.server_name
        return f"http://{host}:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no news here."""
        if not is_broken_pipe_error():
            super().handle_error(request, client_address)
