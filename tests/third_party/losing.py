"""A proxy before a server by others that passes every request on, and throws away the first reply to each append."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class LosingProxy:
    """`lost`: replies thrown away. A body that was lost once is answered when it comes again."""

    def __init__(self, base_url: str) -> None:
        self.lost = 0
        self._seen: set[bytes] = set()
        self._target = base_url.removesuffix("/v1")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(proxy: Self) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                status, reply = proxy._ask(self.command, self.path, body)
                if self.command == "POST" and "/items" in self.path and body not in proxy._seen:
                    proxy._seen.add(body)
                    proxy.lost += 1
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            do_GET = do_POST = do_DELETE = _pass_on  # noqa: N815 - named by the library

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def _ask(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        headers = {"content-type": "application/json", "authorization": "Bearer sk-test"}
        request = urllib.request.Request(self._target + path, body or None, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
