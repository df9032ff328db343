"""What a browser does, over HTTP: cookies, forms with their CSRF token, and JSON for the REST API."""

from __future__ import annotations

import http.cookiejar
import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Any
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Browser:
    def __init__(self, address: str) -> None:
        self.address = address
        self._cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))

    def get(self, path: str, **headers: str) -> Reply:
        return self._open(urllib.request.Request(self.address + path, headers=headers))

    def submit(self, path: str, fields: dict[str, str]) -> Reply:
        """POST a form, and follow where it leads."""
        data = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": self._token}).encode()
        return self._open(urllib.request.Request(self.address + path, data))

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", "X-CSRFToken": self._token, **headers}
        return self._open(urllib.request.Request(self.address + path, data, sent, method=method))

    def log_in(self, admin: str, password: str) -> None:
        self.get(f"{admin}login/")
        reply = self.submit(f"{admin}login/?next={admin}", {"username": "root", "password": password})
        assert any(cookie.name == "sessionid" for cookie in self._cookies), reply.text

    @property
    def _token(self) -> str:
        return next((cookie.value or "" for cookie in self._cookies if cookie.name == "csrftoken"), "")

    def _open(self, request: urllib.request.Request) -> Reply:
        try:
            reply = self._opener.open(request, timeout=60)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            return Reply(reply.status, reply.headers, reply.read().decode())
