"""Delivering for an async caller who waits for the result: at once, or in turn behind whoever has the lease."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from convsessions import enqueue
from convsessions.exceptions import SessionNotFound, WriteNotSettled
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, WriteIntent
from convsessions.remote import clock
from convsessions.values import check_seconds

from . import drivers, protocol
from .threads import in_thread, refuse_transaction

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5
"""Seconds between two looks at a session that somebody else delivers: growing by half from the one to the other."""


async def write_through(
    record: Callable[[], WriteIntent], *, patience: float, client: Any = None, ending: asyncio.Event | None = None
) -> WriteIntent:
    """Record a write with `record`, and return it once it has settled; what was recorded before it goes first.

    `patience`: seconds after which no further request is begun. Raises WriteNotSettled when they are over, or at once
    when a person is needed, for this write or for one before it; delivery goes on without the caller then. A
    cancellation is raised once the request in flight has settled, and workers do the rest. `ending`: set it for the
    same. Raises what `record` raises, and RuntimeError inside a transaction.
    """
    check_seconds("patience", patience)
    ending = ending or asyncio.Event()
    return await drivers.uninterrupted(_write_through(record, patience, client, ending), ending)


async def _write_through(
    record: Callable[[], WriteIntent], patience: float, client: Any, ending: asyncio.Event
) -> WriteIntent:
    ends = clock.now() + patience
    await refuse_transaction()
    written: list[WriteIntent] = []

    def recorded() -> WriteIntent:
        written.append(record())
        return written[-1]

    delivery = protocol.deliver_recorded(recorded, using=alias(), budget=patience, asked_to_end=ending.is_set)
    await drivers.drive(delivery, lambda: written[-1].session_id, client, ending)
    write = await in_thread(_again, written[-1])
    if write.settled:
        return write
    try:
        await settle(write.session_id, write.sequence, ends, client, ending)
    except WriteNotSettled as in_the_way:
        raise WriteNotSettled(await in_thread(_again, write)) from in_the_way
    return await in_thread(_again, write)


async def settled_session(
    session_id: uuid.UUID, *, patience: float, client: Any = None, ending: asyncio.Event | None = None
) -> ConversationSession:
    """The session once every write that is recorded now has settled: what is read then has them all.

    Raises WriteNotSettled as `write_through` does, with the write that is in the way; SessionNotFound.
    """
    check_seconds("patience", patience)
    ends = clock.now() + patience
    await refuse_transaction()
    session, busy = await in_thread(_session_and_busy, session_id)
    if busy:
        await settle(session_id, session.last_sequence, ends, client, ending or asyncio.Event())
        session, _ = await in_thread(_session_and_busy, session_id)
    return session


async def settle(session_id: uuid.UUID, through: int, ends: float, client: Any, ending: asyncio.Event) -> None:
    """Have every write with a sequence of at most `through` settled, by whomever, until `ends` (see `clock.now`).

    Raises WriteNotSettled with the first open write when that is over, or a person is needed.
    """
    length = FIRST_PAUSE
    while (head := await in_thread(_head, session_id, through)) is not None:
        if head.needs_attention or clock.now() >= ends or ending.is_set():
            raise WriteNotSettled(head)
        if _is_free(head):
            await _deliver(session_id, through, ends, client, ending)
        await drivers.pause(min(length, max(ends - clock.now(), 0.0)), ending)
        length = min(length * 1.5, LONGEST_PAUSE)


async def _deliver(session_id: uuid.UUID, through: int, ends: float, client: Any, ending: asyncio.Event) -> None:
    if ending.is_set():
        await in_thread(enqueue.wake, session_id, using=alias())
        return
    budget = max(ends - clock.now(), 0.0)
    await drivers.adeliver(session_id, budget=budget, client=client, through=through, ending=ending)


def _session_and_busy(session_id: uuid.UUID) -> tuple[ConversationSession, bool]:
    """The session, and whether a write of it is open."""
    # In this order: what settles in between shows in the session. The other way round it would show in neither.
    busy = WriteIntent.objects.using(alias()).queue(session_id).exists()
    session = ConversationSession.objects.using(alias()).filter(pk=session_id).first()
    if session is None:
        raise SessionNotFound(f"no session {session_id}")
    return session, busy


def _again(write: WriteIntent) -> WriteIntent:
    return WriteIntent.objects.using(alias()).select_related("session").get(pk=write.pk)


def _head(session_id: uuid.UUID, through: int) -> WriteIntent | None:
    """The first open write up to `through`, with its session."""
    queue = WriteIntent.objects.using(alias()).queue(session_id).filter(sequence__lte=through)
    return queue.select_related("session").defer("popped").first()


def _is_free(head: WriteIntent) -> bool:
    """Whether a delivery would find something to do. Clocks may differ: under the lock the database's decides."""
    now = timezone.now()
    lease_over = head.session.lease_expires_at is None or head.session.lease_expires_at <= now
    return lease_over and (head.next_attempt_at is None or head.next_attempt_at <= now)
