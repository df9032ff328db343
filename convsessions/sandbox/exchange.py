"""One request from its arrival to its reply, with its row in the log.

The row is committed before anything else happens, and its end is noted just before the reply leaves. A client that
sends its next request after a reply thus never seems to overlap with the one before; rows that overlap, did.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from convsessions.items import codec

from .connection import vanish
from .endpoints import Answer, Call, Twist
from .errors import ApiError
from .models import SandboxRequest

Operation = Callable[[Call], Answer]
Response = TypeVar("Response", bound=HttpResponseBase)


class Exchange:
    """`apply` does what was asked; then one of `reply`, `send`, `cut` and `drop` gives the response to return."""

    def __init__(self, request: HttpRequest, operation: Operation, call: Call) -> None:
        self.operation = operation
        self.call = call
        self.environ: dict[str, Any] = request.META
        self.applied = False
        self.conversation_id = call.conversation_id
        # The end is noted by whoever sends the body; `close` must not do it earlier.
        self.streaming = False
        self.row = _begin(request, operation.__name__, call)

    def apply(self, twist: Twist | None = None) -> Answer:
        """Carries the operation out, now and in full, and returns what the API would answer."""
        try:
            answer = self.operation(replace(self.call, twist=twist) if twist else self.call)
        except ApiError as error:
            return Answer.refusal(error)
        self.applied = self.applied or answer.applied
        if self.operation.__name__ == "create_conversation" and not self.conversation_id:
            self.conversation_id = answer.body["id"]
        return answer

    def note_fault(self, kind: str) -> None:
        """Says in the log which fault this request met, at once, for it may hang."""
        self._write(fault=kind)

    def reply(self, answer: Answer) -> HttpResponse:
        """The ordinary reply: JSON, in one piece."""
        body = encoded(answer)
        return self.send(body, "application/json", status=answer.status, headers=answer.headers)

    def refuse(self, error: ApiError) -> HttpResponse:
        return self.reply(Answer.refusal(error))

    def send(
        self, body: bytes, content_type: str, *, status: int = 200, headers: dict[str, str] | None = None
    ) -> HttpResponse:
        """Any complete reply."""
        self.finish(status)
        return self._dressed(HttpResponse(body, content_type=content_type, status=status), body, headers)

    def stream(self, answer: Answer, chunks: Callable[[bytes], Iterable[bytes]]) -> HttpResponseBase:
        """A reply whose body comes as `chunks` of it; whoever makes these ends with `finish`."""
        body = encoded(answer)
        self.streaming = True
        response = StreamingHttpResponse(chunks(body), content_type="application/json", status=answer.status)
        return self._dressed(response, body, answer.headers)

    def cut(self, answer: Answer) -> HttpResponseBase:
        """The headers of the whole reply and half of its body; then the connection ends."""
        self.finish(answer.status)
        return self.stream(answer, lambda body: vanish(self.environ, body[: len(body) // 2]))

    def drop(self) -> HttpResponseBase:
        """The connection ends without a byte of reply."""
        self.finish(0)
        return StreamingHttpResponse(vanish(self.environ))

    def finish(self, status: int) -> None:
        """Notes the end in the log, once; the first call counts."""
        if self.row.finished_at is None:
            self._write(
                status=status,
                applied=self.applied,
                conversation=self.conversation_id[:64],
                finished_at=time.time(),
            )

    def note_late_change(self) -> None:
        """Says in the log that the request has changed the conversation after all."""
        self._write(applied=self.applied)

    def close(self) -> None:
        """Whatever went wrong, no row of an ended request stays open."""
        if not self.streaming:
            self.finish(0)

    def _write(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self.row, name, value)
        # Not `save`: a reset may have removed the row meanwhile.
        SandboxRequest.objects.filter(pk=self.row.pk).update(**values)

    def _dressed(self, response: Response, body: bytes, headers: dict[str, str] | None) -> Response:
        response["Content-Length"] = str(len(body))
        response["x-request-id"] = self.row.request_id  # recorded: on every answer
        for name, value in (headers or {}).items():
            response[name] = value
        return response


def encoded(answer: Answer) -> bytes:
    """The body of the ordinary reply."""
    return codec.encode(answer.body).encode("ascii")


def _begin(request: HttpRequest, operation: str, call: Call) -> SandboxRequest:
    """Opens its own transaction of one statement."""
    return SandboxRequest.objects.create(
        request_id=f"req_{secrets.token_hex(16)}",
        method=(request.method or "")[:8],
        path=request.get_full_path()[:500],
        operation=operation,
        conversation=call.conversation_id[:64],
        items=_count_items(call.body),
        started_at=time.time(),
    )


def _count_items(body: bytes) -> int:
    try:
        items = json.loads(body or b"{}")["items"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0
    return len(items) if isinstance(items, list) else 0
