"""Reading what became of a write, and the remote history."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import chain
from typing import Any

from convsessions.conf import conf
from convsessions.delivery import drivers
from convsessions.delivery.latest import read_latest
from convsessions.delivery.pages import Walk, included, read_failed
from convsessions.delivery.threads import asynchronous, in_thread, refuse_transaction
from convsessions.exceptions import InvalidInput, WriteNotFound, WriteNotSettled
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, WriteIntent
from convsessions.reconcile.reading import History
from convsessions.remote.calls import PAGE_ITEMS, ListItems, RemoteCall
from convsessions.remote.outcomes import Outcome, id_of
from convsessions.states import OutcomeKind
from convsessions.values import as_uuid, check_seconds, check_text

from .sessions import as_cleared, session_of

MAX_LATEST = 10_000


def get_write(write_id: uuid.UUID) -> WriteIntent:
    """The write as it is now. Raises WriteNotFound."""
    write = WriteIntent.objects.using(alias()).filter(pk=as_uuid(write_id, WriteNotFound)).first()
    if write is None:
        raise WriteNotFound(f"no write {write_id}")
    return write


def wait_for_write(write_id: uuid.UUID, *, timeout: float) -> WriteIntent:
    """Wait until the write has settled, and return it. `timeout`: seconds, at most WAIT_MAX.

    Raises WriteNotFound; WriteNotSettled with the write when it is still open then, or is ambiguous, which waiting
    does not change; RuntimeError inside a transaction.
    """
    check_seconds("timeout", timeout)
    drivers.refuse_transaction()
    ends = time.monotonic() + min(timeout, conf.WAIT_MAX)
    pause = 0.02
    while True:
        write = get_write(write_id)
        if write.settled:
            return write
        left = ends - time.monotonic()
        if left <= 0 or write.needs_attention:
            raise WriteNotSettled(write)
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 0.5)


async def await_for_write(write_id: uuid.UUID, *, timeout: float) -> WriteIntent:  # noqa: ASYNC109 - its twin's name
    """The async twin of `wait_for_write`: it sleeps in the event loop."""
    check_seconds("timeout", timeout)
    await refuse_transaction()
    ends = time.monotonic() + min(timeout, conf.WAIT_MAX)
    pause = 0.02
    while True:
        write = await aget_write(write_id)
        if write.settled:
            return write
        left = ends - time.monotonic()
        if left <= 0 or write.needs_attention:
            raise WriteNotSettled(write)
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, 0.5)


def get_items(
    session_id: uuid.UUID, *, limit: int = 20, order: str = "asc", after: str | None = None
) -> dict[str, Any]:
    """A page of the remote history in the OpenAI list shape: `object`, `data`, `first_id`, `last_id`, `has_more`.

    `limit`: 1..100 items; `order`: ``asc`` or ``desc``; `after`: an item id, exclusive. A session without a
    conversation has an empty page, without a request. Raises InvalidInput, SessionNotFound, RemoteReadFailed;
    RuntimeError inside a transaction.
    """
    _check_page(limit, order, after)
    session = session_of(session_id)
    while session.conversation_id is not None:
        reply = drivers.read(session, _page_call(session, limit, order, after))
        if reply.status != 404 or (now := as_cleared(session)) is None:
            return _page(reply)
        session = now
    return _listing([], has_more=False)


async def aget_items(
    session_id: uuid.UUID, *, limit: int = 20, order: str = "asc", after: str | None = None
) -> dict[str, Any]:
    """The async twin of `get_items`: awaits an `openai.AsyncOpenAI`."""
    _check_page(limit, order, after)
    await refuse_transaction()
    session = await in_thread(session_of, session_id)
    while session.conversation_id is not None:
        reply = await drivers.aread(session, _page_call(session, limit, order, after))
        if reply.status != 404 or (now := await in_thread(as_cleared, session)) is None:
            return _page(reply)
        session = now
    return _listing([], has_more=False)


def _check_page(limit: object, order: object, after: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= PAGE_ITEMS:
        raise InvalidInput("limit", f"give a whole number from 1 to {PAGE_ITEMS}")
    if order not in ("asc", "desc"):
        raise InvalidInput("order", "choose asc or desc")
    check_text("after", after, 128)


def _page_call(
    session: ConversationSession, limit: int, order: str, after: str | None
) -> Callable[[float], RemoteCall]:
    return lambda not_after: ListItems(
        conversation_id=session.conversation_id or "",
        after=after or "",
        order=order,
        limit=limit,
        not_after=not_after,
        include=included(),
        lenient=True,
    )


def _page(reply: Outcome) -> dict[str, Any]:
    if reply.kind is not OutcomeKind.APPLIED:
        raise read_failed(reply)
    return _listing(reply.items, has_more=reply.data["has_more"])


def get_latest_items(session_id: uuid.UUID, count: int) -> dict[str, Any]:
    """The newest `count` items (1..10,000), the oldest of them first, in the shape of `get_items`.

    `has_more` says whether there are older ones. Reads up to 100 items a request. Raises as `get_items`, and
    RemoteReadFailed also when it takes more than READ_TIMEOUT in all, or the history changes faster than it can be
    read.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_LATEST:
        raise InvalidInput("latest", f"give a whole number from 1 to {MAX_LATEST}")
    session = session_of(session_id)
    while session.conversation_id is not None:
        history = _latest_of(session, session.conversation_id, count)
        if history.problem is None:
            return _listing(history.items[-count:], has_more=len(history.items) > count)
        if history.problem.status != 404 or (now := as_cleared(session)) is None:
            raise read_failed(history.problem)
        session = now
    return _listing([], has_more=False)


def _latest_of(session: ConversationSession, conversation_id: str, count: int) -> History:
    include = included()
    return drivers.read_all(
        session,
        lambda deadline: read_latest(conversation_id, count, deadline, include=include, lenient=True),
        seconds=conf.READ_TIMEOUT,
    )


def iter_items(session_id: uuid.UUID) -> Iterator[Any]:
    """Every item of the remote history, the oldest first, read as it is asked for: a page of 100 at a time is held.

    Items are as the remote lists them, whatever they are. Raises SessionNotFound, and RuntimeError inside a
    transaction, at once; RemoteReadFailed where the reading comes to an end before the history does, after trying a
    page three times.
    """
    drivers.refuse_transaction()
    session = session_of(session_id)
    if session.conversation_id is None:
        return iter(())
    return chain.from_iterable(drivers.read_pages(session, Walk(session.conversation_id)))


async def aiter_items(session_id: uuid.UUID) -> AsyncIterator[Any]:
    """The async twin of `iter_items`; raises when the first item is asked for."""
    await refuse_transaction()
    session = await in_thread(session_of, session_id)
    if session.conversation_id is None:
        return
    client = await drivers.async_client_of(session)
    async for page in drivers.aread_pages(client, Walk(session.conversation_id)):
        for item in page:
            yield item


def _listing(items: list[Any], *, has_more: bool) -> dict[str, Any]:
    first_id, last_id = (id_of(items[0]) or None, id_of(items[-1]) or None) if items else (None, None)
    return {"object": "list", "data": items, "first_id": first_id, "last_id": last_id, "has_more": has_more}


aget_write = asynchronous(get_write)
