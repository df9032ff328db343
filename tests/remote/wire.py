"""A server that misbehaves below HTTP: raw sockets, and a script that says what happens to each connection.

A script is a function of one `Connection`. `Server.scripts` are used up one by one; the last one serves every further
connection, so that a test can count the requests of a client that sends again.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CERTIFICATE = Path(__file__).with_name("self_signed.pem")
"""Key and certificate of nobody, for 127.0.0.1; signed by itself, so that no client trusts it."""

SMALL_WINDOW = 4096
"""Bytes of a receive buffer that makes an upload stall soon when nobody reads."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """One accepted connection, and what of its request has arrived."""

    def __init__(self, server: Server, taken: socket.socket) -> None:
        self.server, self.socket = server, taken

    def read_head(self) -> bytes:
        """The request up to the empty line; what came after it stays in `self.rest`."""
        received = b""
        while b"\r\n\r\n" not in received:
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError("the client went away")
            received += piece
        head, _, self.rest = received.partition(b"\r\n\r\n")
        return head

    def read_request(self) -> Request:
        """The whole request; it is noted in `server.requests`."""
        first, *lines = self.read_head().decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        length = int(headers.get("content-length", 0))
        body = self.rest
        while len(body) < length:
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError("the client went away")
            body += piece
        method, path, _ = first.split(" ")
        request = Request(method, path, headers, body)
        self.server.requests.append(request)
        self.server.asked.set()
        return request

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def reset(self) -> None:
        """End the connection with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def pause(self, seconds: float) -> None:
        """Wait, unless the test is over."""
        self.server.over.wait(seconds)

    def hold(self) -> None:
        """Keep the connection open until the test is over."""
        self.server.over.wait()


Script = Callable[[Connection], None]


class Server:
    """Listens on a free port of 127.0.0.1, one thread a connection."""

    def __init__(self, *scripts: Script, tls: bool = False, window: int | None = None) -> None:
        self.scripts = list(scripts)
        self.requests: list[Request] = []
        """Every request that was read to its end."""
        self.connections = 0
        self.received = bytearray()
        """What `drains` read, in the order of its arrival."""
        self.over = threading.Event()
        self.asked = threading.Event()
        """Set once a request was read to its end."""
        self.drained = threading.Event()
        """Set once a `drains_when` read its connection to the end."""
        self._tls = tls
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket()
        if window is not None:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.port: int = self._listener.getsockname()[1]
        self.base_url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for taken in self._open:
            with contextlib.suppress(OSError):
                taken.shutdown(socket.SHUT_RDWR)
            taken.close()
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(taken)
            script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
            self.connections += 1
            self._start(lambda taken=taken, script=script: self._serve(taken, script))

    def _serve(self, taken: socket.socket, script: Script) -> None:
        with contextlib.suppress(OSError, ValueError):  # the client went away, or the test is over
            if self._tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(CERTIFICATE)
                taken = context.wrap_socket(taken, server_side=True)
                self._open.append(taken)
            script(Connection(self, taken))
        taken.close()


# -- scripts ---------------------------------------------------------------------------------------------------------


def reply(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole HTTP response that ends its connection."""
    given = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    given.update(headers or {})
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def answers(status: int, body: Any = b"", **headers: str) -> Script:
    """Read the request, then answer. `body`: bytes as they are, anything else as JSON; `headers`: with _ for -."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def script(connection: Connection) -> None:
        connection.read_request()
        connection.send(reply(status, data, named))

    return script


def fails(status: int, code: str | None = None, param: str | None = None, **headers: str) -> Script:
    """Answer with an error object as the API does; its message quotes content, as the API's may."""
    error = {"message": "Invalid: 'the secret text'", "type": "error", "code": code, "param": param}
    return answers(status, {"error": error}, **headers)


def closes_at_once(connection: Connection) -> None:
    connection.socket.close()


def resets_after_request(connection: Connection) -> None:
    connection.read_request()
    connection.reset()


def closes_after_request(connection: Connection) -> None:
    connection.read_request()
    connection.socket.close()


def sends_then(data: bytes, end: Callable[[Connection], None]) -> Script:
    """Read the request, send `data`, and end the connection with `end`."""

    def script(connection: Connection) -> None:
        connection.read_request()
        connection.send(data)
        connection.pause(0.05)  # a reset overtakes data that the client has not read yet
        end(connection)

    return script


def never_answers(connection: Connection) -> None:
    connection.read_request()
    connection.hold()


def never_reads(connection: Connection) -> None:
    connection.hold()


def trickles(data: bytes, *, at_once: int = 0) -> Script:
    """Read the request, send the first `at_once` bytes of `data`, then the rest one by one, every 30 ms."""

    def script(connection: Connection) -> None:
        connection.read_request()
        connection.send(data[:at_once])
        for byte in data[at_once:]:
            connection.send(bytes([byte]))
            connection.pause(0.03)

    return script


def drains_when(ready: threading.Event) -> Script:
    """Read nothing until `ready`; then everything that comes, to the end of the connection, into `server.received`."""

    def script(connection: Connection) -> None:
        ready.wait(10)
        with contextlib.suppress(ConnectionError):
            while piece := connection.socket.recv(65536):
                connection.server.received += piece
        connection.server.drained.set()

    return script
