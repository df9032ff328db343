"""Perform what the protocol asks for: with a sync client, or with an async one. No protocol logic lives here."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from typing import Any, TypeVar

from django.db import connections

from convsessions.conf import conf
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession
from convsessions.reconcile.reading import Deadline, History, Requests
from convsessions.remote import clients, clock, gateway, outcomes, tracing
from convsessions.remote.calls import Pause, RemoteCall
from convsessions.remote.outcomes import Outcome

from . import protocol, threads
from .pages import Walk
from .protocol import Delivery, Report

T = TypeVar("T")


def deliver(session_id: uuid.UUID, *, budget: float | None = None, client: Any = None) -> Report:
    """Deliver a session's open writes with a sync client; blocks for about `budget` seconds at most.

    `client`: an `openai.OpenAI`; by default the one that CLIENT_FACTORY gives. Contract as `protocol.deliver`.
    """
    delivery = protocol.deliver(session_id, using=alias(), budget=budget)
    outcome: Outcome | None = None
    with tracing.delivery() as told:
        told.session = session_id
        while not isinstance(request := _advance(delivery, outcome), Report):
            if isinstance(request, Pause):
                time.sleep(request.seconds)
                outcome = None
            else:
                client = client or _client(session_id)
                told.count(request)
                outcome = perform(request, client)
        told.ending = request.ending.value
        return request


async def adeliver(
    session_id: uuid.UUID,
    *,
    budget: float | None = None,
    client: Any = None,
    through: int | None = None,
    ending: asyncio.Event | None = None,
) -> Report:
    """The async twin of `deliver`: awaits an `openai.AsyncOpenAI`, and runs the journal's steps in threads.

    `through`: as in `protocol.deliver`; `ending`: once it is set, the request in flight is settled, and the rest is
    left to workers. A cancellation does the same, and is raised after that.
    """
    ending = ending or asyncio.Event()
    delivery = protocol.deliver(session_id, using=alias(), budget=budget, through=through, asked_to_end=ending.is_set)
    return await uninterrupted(drive(delivery, lambda: session_id, client, ending), ending)


async def drive(delivery: Delivery, whose: Callable[[], uuid.UUID], client: Any, ending: asyncio.Event) -> Report:
    """Carry out `delivery` to its end. `whose` is asked for the session once there is a request to make."""
    outcome: Outcome | None = None
    with tracing.delivery() as told:
        while True:
            request = await threads.in_thread(_advance, delivery, outcome)
            if isinstance(request, Report):
                told.session, told.ending = request.session_id, request.ending.value
                return request
            told.session = whose()
            if isinstance(request, Pause):
                await pause(request.seconds, ending)
                outcome = None
            else:
                client = client or await _async_client(told.session)
                told.count(request)
                outcome = await aperform(request, client)


async def uninterrupted(work: Coroutine[Any, Any, T], ending: asyncio.Event) -> T:
    """Await `work` to its end, whatever happens. A cancellation sets `ending`, and is raised once `work` has ended."""
    task = asyncio.ensure_future(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancellation = cancellation or error
            ending.set()
    if cancellation is not None:
        task.exception()  # looked at, or asyncio complains that nobody did
        raise cancellation
    return task.result()


async def pause(seconds: float, ending: asyncio.Event) -> None:
    """Sleep, until `ending` is set at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ending.wait()


def perform(request: RemoteCall, client: Any) -> Outcome:
    """Perform one request. `client`: an `openai.OpenAI`, or the Outcome that the lack of one means."""
    refuse_transaction()
    return client if isinstance(client, Outcome) else gateway.perform(request, client)


async def aperform(request: RemoteCall, client: Any) -> Outcome:
    """The async twin of `perform`."""
    return client if isinstance(client, Outcome) else await gateway.aperform(request, client)


def refuse_transaction() -> None:
    """Raise RuntimeError inside a transaction: a slow server would hold its locks."""
    for connection in connections.all(initialized_only=True):
        # As atomic(durable=True) does: a TestCase of the host wraps everything in transactions of its own.
        if any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
            raise RuntimeError("a request to the API must not be made inside a transaction")


def read(session: ConversationSession, request: Callable[[float], RemoteCall]) -> Outcome:
    """Perform one reading request, made for the deadline that it is given."""
    return perform(request(clock.now() + conf.REQUEST_TIMEOUT), _client_of(session))


async def aread(session: ConversationSession, request: Callable[[float], RemoteCall]) -> Outcome:
    """The async twin of `read`."""
    client = await async_client_of(session)
    return await aperform(request(clock.now() + conf.REQUEST_TIMEOUT), client)


def read_all(
    session: ConversationSession, reading: Callable[[Deadline], Requests], *, seconds: float = math.inf
) -> History:
    """Perform a reading of several requests, each with a deadline of its own, and all within `seconds`."""
    client = _client_of(session)
    requests = _started(reading, seconds)
    step = _advance(requests, None)
    while isinstance(step, RemoteCall):
        step = _advance(requests, perform(step, client))
    assert isinstance(step, History)  # noqa: S101 - a reading never pauses
    return step


async def aread_all(client: Any, reading: Callable[[Deadline], Requests], *, seconds: float = math.inf) -> History:
    """The async twin of `read_all`. `client`: as `async_client_of` returns it."""
    requests = _started(reading, seconds)
    step = _advance(requests, None)
    while isinstance(step, RemoteCall):
        step = _advance(requests, await aperform(step, client))
    assert isinstance(step, History)  # noqa: S101 - a reading never pauses
    return step


def _started(reading: Callable[[Deadline], Requests], seconds: float) -> Requests:
    ends = clock.now() + seconds
    return reading(lambda: min(clock.now() + conf.REQUEST_TIMEOUT, ends))


def read_pages(session: ConversationSession, walk: Walk) -> Iterator[list[Any]]:
    """The items of a walk, page by page, as they are asked for. Raises RemoteReadFailed."""
    client = _client_of(session)
    while not walk.ended:
        time.sleep(walk.pause)
        yield walk.take(perform(walk.request(), client))


async def aread_pages(client: Any, walk: Walk) -> AsyncIterator[list[Any]]:
    """The async twin of `read_pages`. `client`: as `async_client_of` returns it."""
    while not walk.ended:
        await asyncio.sleep(walk.pause)
        yield walk.take(await aperform(walk.request(), client))


def _advance(requests: Generator[Any, Outcome | None, T], outcome: Outcome | None) -> RemoteCall | Pause | T:
    """What `requests` asks for next, or what it returns: StopIteration cannot cross a future."""
    try:
        request: RemoteCall | Pause = requests.send(outcome)
    except StopIteration as end:
        returned: T = end.value
        return returned
    return request


def _client(session_id: uuid.UUID) -> Any:
    return _client_of(ConversationSession.objects.using(alias()).get(pk=session_id))


def _client_of(session: ConversationSession) -> Any:
    try:
        return clients.client_for(session)
    except Exception as error:  # noqa: BLE001 - a factory may raise anything; nothing was sent
        return outcomes.no_client(error)


async def _async_client(session_id: uuid.UUID) -> Any:
    return await async_client_of(await threads.in_thread(ConversationSession.objects.using(alias()).get, pk=session_id))


async def async_client_of(session: ConversationSession) -> Any:
    """The client that ASYNC_CLIENT_FACTORY gives, or the Outcome that the lack of one means."""
    try:
        return await clients.async_client_for(session, threads.in_thread)
    except Exception as error:  # noqa: BLE001 - as in _client_of
        return outcomes.no_client(error)
