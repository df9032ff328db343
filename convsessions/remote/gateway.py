"""Performs a `RemoteCall` with the `openai` client and says how it ended.

Both gateways send a request once (`max_retries=0`, no redirects) and end at its deadline, whatever the server does:
the HTTP library's own timeouts are per operation, so a byte now and then would keep a request alive for ever.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import openai

from . import clock, outcomes, tracing
from .calls import ListItems, RemoteCall
from .outcomes import Outcome

if TYPE_CHECKING:
    from openai._types import RequestOptions

STALE: Final = "deadline_passed_before_sending"
DEADLINE: Final = "deadline"
PIECE: Final = 64 * 1024
"""Bytes of a body that are sent at a time."""
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})

CONNECTING: Final = 1 / 3
"""Share of a request's time for each of: a free connection, TCP, TLS. Together they end before the deadline, so that
what was never sent is known as such; the deadline alone would leave it unknown."""


DEEPEST: Final = 400
"""Levels of a reply that are taken; what we send has 64. Python writes fewer levels than it reads."""


class _BodyUntil(io.BytesIO):
    """A request body that stops being sent at the deadline, and tells whether it `began` to be sent.

    After the deadline this worker may lose its lease; not one byte may leave then. The HTTP library reads the body in
    pieces of 64 KiB once it is connected, and takes its length from `seek` and `tell`.
    """

    def __init__(self, body: bytes, not_after: float) -> None:
        super().__init__(body)
        self._not_after = not_after
        self.began = False

    def read(self, size: int | None = -1, /) -> bytes:
        if clock.now() >= self._not_after:
            raise TimeoutError(DEADLINE)
        self.began = True
        return super().read(size)


class _AsyncBodyUntil:
    """The same for the async client, which does not ask for its length."""

    def __init__(self, body: bytes, not_after: float) -> None:
        self._body, self._not_after = body, not_after
        self.began = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), PIECE):
            if clock.now() >= self._not_after:
                raise TimeoutError(DEADLINE)
            self.began = True
            yield self._body[start : start + PIECE]


def perform(call: RemoteCall, client: openai.OpenAI) -> Outcome:
    """Perform `call` and return how it ended, at `call.not_after` at the latest. Blocks; opens no transaction.

    The request runs in a thread of its own. When the deadline comes first, the outcome is unknown, and the thread is
    left to its fate: it can only read, since `_BodyUntil` sends nothing after the deadline.
    """
    with tracing.span(call) as taken_down:
        outcome = _perform(call, client)
        plainer = _without_include(call, outcome)
        return taken_down(outcome if plainer is None else _perform(plainer, client))


def _without_include(call: RemoteCall, outcome: Outcome) -> ListItems | None:
    """The read to make instead, where a server knows no `include`: agentic-api 0.9 answers 400 without a code.

    OpenAI's answers to bad requests have a code (recorded); what it hides is never read without `include`.
    """
    if isinstance(call, ListItems) and call.include and (outcome.status, outcome.code) == (400, "http_400"):
        return replace(call, include=())
    return None


def _perform(call: RemoteCall, client: openai.OpenAI) -> Outcome:
    ended: list[Outcome] = []
    thread = threading.Thread(target=lambda: ended.append(_send(call, client)), daemon=True)
    remaining = call.not_after - clock.now()
    if remaining <= 0:
        return outcomes.never_sent(STALE)
    thread.start()
    thread.join(remaining)
    # One read: the thread may still append between two.
    return next(iter(ended), None) or outcomes.unknown(DEADLINE)


def _send(call: RemoteCall, client: openai.OpenAI) -> Outcome:
    remaining = call.not_after - clock.now()
    if remaining <= 0:
        return outcomes.never_sent(STALE)
    try:
        body = call.body
    except UnicodeEncodeError:
        return outcomes.unencodable()
    content = None if body is None else _BodyUntil(body, call.not_after)
    try:
        if call.method == "GET":
            reply = client.get(call.path, cast_to=openai.HttpxBinaryResponseContent, options=_options(call, remaining))
        else:
            send = client.post if call.method == "POST" else client.delete
            reply = send(
                call.path,
                cast_to=openai.HttpxBinaryResponseContent,
                content=content,
                options=_options(call, remaining),
            )
    except Exception as error:  # noqa: BLE001 - whatever it is, the outcome must be told; the default is unknown
        return _of_error(call, error, began=content is not None and content.began)
    return _of_reply(call, reply.response)


async def aperform(call: RemoteCall, client: openai.AsyncOpenAI) -> Outcome:
    """The async twin of `perform`. A cancellation from outside propagates; the outcome is unknown then."""
    with tracing.span(call) as taken_down:
        outcome = await _aperform(call, client)
        plainer = _without_include(call, outcome)
        return taken_down(outcome if plainer is None else await _aperform(plainer, client))


async def _aperform(call: RemoteCall, client: openai.AsyncOpenAI) -> Outcome:
    remaining = call.not_after - clock.now()
    if remaining <= 0:
        return outcomes.never_sent(STALE)
    try:
        async with asyncio.timeout(remaining):
            return await _asend(call, client, remaining)
    except TimeoutError:
        return outcomes.unknown(DEADLINE)


async def _asend(call: RemoteCall, client: openai.AsyncOpenAI, remaining: float) -> Outcome:
    try:
        body = call.body
    except UnicodeEncodeError:
        return outcomes.unencodable()
    content = None if body is None else _AsyncBodyUntil(body, call.not_after)
    try:
        if call.method == "GET":
            reply = await client.get(
                call.path, cast_to=openai.HttpxBinaryResponseContent, options=_options(call, remaining)
            )
        else:
            send = client.post if call.method == "POST" else client.delete
            reply = await send(
                call.path,
                cast_to=openai.HttpxBinaryResponseContent,
                content=content,
                options=_options(call, remaining, {} if body is None else {"Content-Length": str(len(body))}),
            )
    except Exception as error:  # noqa: BLE001 - as in _send
        return _of_error(call, error, began=content is not None and content.began)
    return _of_reply(call, reply.response)


def _options(call: RemoteCall, seconds: float, headers: Mapping[str, str] = NO_HEADERS) -> RequestOptions:
    connecting = seconds * CONNECTING
    timeout = openai.Timeout(seconds, connect=connecting, pool=connecting)
    return {
        "max_retries": 0,
        "timeout": timeout,
        "follow_redirects": False,
        "params": dict(call.query),
        "headers": dict(headers),
    }


def _of_error(call: RemoteCall, error: Exception, *, began: bool) -> Outcome:
    """`began`: whether the body was being sent. Then nothing counts as never sent, whatever the error says.

    A host's client may raise a ConnectError after that: from a hook, or from a transport that tries again.
    """
    if isinstance(error, openai.APIStatusError):
        return _of_reply(call, error.response)
    outcome = outcomes.of_exception(error)
    return outcomes.unknown(outcome.code) if began else outcome


def _of_reply(call: RemoteCall, reply: Any) -> Outcome:
    try:
        body = _pruned(json.loads(reply.content, parse_int=_integer, parse_float=_float, parse_constant=_nothing))
    except (ValueError, RecursionError):  # truncated, HTML, not UTF-8, or nested beyond reason
        body = None
    return outcomes.of_response(call, reply.status_code, reply.headers, body)


def _integer(digits: str) -> int | None:
    """None where Python refuses to read it (CVE-2020-10735): one such number must not make a page unreadable."""
    return int(digits) if len(digits) <= sys.int_info.default_max_str_digits else None


def _float(digits: str) -> float | None:
    """None for what is beyond a float: Python reads it as infinity, which no JSON can carry on; as `_integer`."""
    number = float(digits)
    return number if math.isfinite(number) else None


def _nothing(constant: str) -> None:
    """NaN and the infinities are no JSON; as `_integer`."""


def _pruned(value: Any) -> Any:
    """`value`, with None for what lies too deep to be written again from any depth of our stack; as `_integer`."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        level = [child for one in level for child in _children(one) if isinstance(child, dict | list)]
        if not level:
            return value
    for one in level:
        for key in list(one) if isinstance(one, dict) else range(len(one)):
            one[key] = None
    return value


def _children(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container
