"""Perform what the protocol asks for: with a sync client, or with an async one. No protocol logic lives here."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from convsessions.conf import conf
from convsessions.exceptions import RemoteReadFailed
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession
from convsessions.reconcile.reading import Deadline, History, Requests
from convsessions.remote import clients, clock, gateway, outcomes
from convsessions.remote.calls import Pause, RemoteCall
from convsessions.remote.outcomes import Outcome

from . import protocol
from .protocol import Delivery, Report


def deliver(session_id: uuid.UUID, *, budget: float | None = None, client: Any = None) -> Report:
    """Deliver a session's open writes with a sync client; blocks for about `budget` seconds at most.

    `client`: an `openai.OpenAI`; by default the one that CLIENT_FACTORY gives. Contract as `protocol.deliver`.
    """
    delivery = protocol.deliver(session_id, using=alias(), budget=budget)
    outcome: Outcome | None = None
    while True:
        try:
            request = delivery.send(outcome)
        except StopIteration as end:
            report: Report = end.value
            return report
        if isinstance(request, Pause):
            time.sleep(request.seconds)
            outcome = None
        else:
            client = client or _client(session_id)
            outcome = perform(request, client)


async def adeliver(session_id: uuid.UUID, *, budget: float | None = None, client: Any = None) -> Report:
    """The async twin of `deliver`: awaits an `openai.AsyncOpenAI`, and runs the journal's steps in threads."""
    delivery = protocol.deliver(session_id, using=alias(), budget=budget)
    outcome: Outcome | None = None
    while True:
        request = await sync_to_async(_advance)(delivery, outcome)
        if isinstance(request, Report):
            return request
        if isinstance(request, Pause):
            await asyncio.sleep(request.seconds)
            outcome = None
        else:
            client = client or await sync_to_async(_async_client)(session_id)
            outcome = await aperform(request, client)


def perform(request: RemoteCall, client: Any) -> Outcome:
    """Perform one request. `client`: an `openai.OpenAI`, or the Outcome that the lack of one means."""
    refuse_transaction()
    return client if isinstance(client, Outcome) else gateway.perform(request, client)


async def aperform(request: RemoteCall, client: Any) -> Outcome:
    """The async twin of `perform`."""
    return client if isinstance(client, Outcome) else await gateway.aperform(request, client)


def read_failed(outcome: Outcome) -> RemoteReadFailed:
    """The exception for a read that ended in `outcome`."""
    return RemoteReadFailed(outcome.code, status=outcome.status, param=outcome.param, retry_after=outcome.retry_after)


def refuse_transaction() -> None:
    """Raise RuntimeError inside a transaction: a slow server would hold its locks."""
    for connection in connections.all(initialized_only=True):
        # As atomic(durable=True) does: a TestCase of the host wraps everything in transactions of its own.
        if any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
            raise RuntimeError("a request to the API must not be made inside a transaction")


def read(session: ConversationSession, request: Callable[[float], RemoteCall]) -> Outcome:
    """Perform one reading request, made for the deadline that it is given."""
    return perform(request(clock.now() + conf.REQUEST_TIMEOUT), _client_of(session))


def read_all(
    session: ConversationSession, reading: Callable[[Deadline], Requests], *, seconds: float = math.inf
) -> History:
    """Perform a reading of several requests, each with a deadline of its own, and all within `seconds`."""
    client = _client_of(session)
    ends = clock.now() + seconds
    requests = reading(lambda: min(clock.now() + conf.REQUEST_TIMEOUT, ends))
    outcome: Outcome | None = None
    while True:
        try:
            request = requests.send(outcome)
        except StopIteration as end:
            history: History = end.value
            return history
        assert isinstance(request, RemoteCall)  # noqa: S101 - a reading never pauses
        outcome = perform(request, client)


def _advance(delivery: Delivery, outcome: Outcome | None) -> RemoteCall | Pause | Report:
    # StopIteration cannot cross a future.
    try:
        return delivery.send(outcome)
    except StopIteration as end:
        report: Report = end.value
        return report


def _client(session_id: uuid.UUID) -> Any:
    return _client_of(ConversationSession.objects.using(alias()).get(pk=session_id))


def _client_of(session: ConversationSession) -> Any:
    try:
        return clients.client_for(session)
    except Exception as error:  # noqa: BLE001 - a factory may raise anything; nothing was sent
        return outcomes.no_client(error)


def _async_client(session_id: uuid.UUID) -> Any:
    session = ConversationSession.objects.using(alias()).get(pk=session_id)
    try:
        return clients.async_client_for(session)
    except Exception as error:  # noqa: BLE001 - as in _client_of
        return outcomes.no_client(error)
