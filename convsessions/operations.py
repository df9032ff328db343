"""The public Python API: record writes, read what became of them, read the remote history.

Recording joins the caller's transaction; nothing is sent before it commits. Reading the remote, waiting and delivering
must not happen inside a transaction and raise RuntimeError there. Authorisation is the caller's: these functions take
ids and do not know who is asking.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import time
import uuid
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from .conf import API_ITEMS_PER_REQUEST, conf
from .delivery import drivers
from .delivery.drivers import adeliver, deliver
from .delivery.inline import settled_session, write_through
from .delivery.inquiry import Inspection, inspect_write, unreadable
from .delivery.latest import read_latest
from .delivery.threads import asynchronous, in_thread, refuse_transaction
from .delivery.verification import Drift, verify
from .exceptions import EvidenceChanged, InvalidInput, RemoteReadFailed, SessionNotFound, WriteNotFound, WriteNotSettled
from .items.chunking import chunks, cut_evenly
from .items.intake import prepare_items
from .journal import heartbeats, recording, resolving
from .journal.locking import alias
from .journal.taking_over import Place, record_take_over
from .lifecycle import (
    UNCHANGED,
    Recorded,
    check_conversation,
    create_session,
    delete_session,
    get_session,
    open_session,
    record_deletion,
    update_session,
)
from .models import ConversationSession, Heartbeat, WriteIntent
from .remote.calls import PAGE_ITEMS, ListItems, RemoteCall
from .remote.outcomes import Outcome
from .states import OutcomeKind, Resolution, Verdict
from .values import MAX_KEY, check_text

__all__ = [
    "UNCHANGED",
    "Place",
    "Recorded",
    "aappend_items",
    "acancel_write",
    "aclear_session",
    "acreate_session",
    "adeliver",
    "aget_items",
    "aget_session",
    "aget_write",
    "apop_item",
    "append_items",
    "await_for_write",
    "cancel_write",
    "check_conversation",
    "clear_session",
    "create_session",
    "delete_session",
    "deliver",
    "digest_of_items",
    "due_sessions",
    "get_items",
    "get_latest_items",
    "get_session",
    "get_write",
    "inspect_write",
    "open_session",
    "pop_item",
    "reconcile_write",
    "record_append",
    "record_clear",
    "record_deletion",
    "record_pop",
    "resolve_write",
    "retry_write",
    "settled_session",
    "sweep",
    "take_over_append",
    "update_session",
    "verify_session",
    "wait_for_write",
    "write_through",
]

MAX_LATEST = 10_000
SWEEP_LIMIT = 1000
"""Sessions whose doorbell one sweep rings; the next sweep goes on."""


def append_items(
    session_id: uuid.UUID, items: object, *, author: Any = None, idempotency_key: str | None = None
) -> WriteIntent:
    """Record that `items` are to be appended, in this order, and return the write.

    `items`: list of item objects as the Responses API defines them, mappings or pydantic models. `idempotency_key`: a
    second call with the same key and items returns the first call's write; with other items it raises
    IdempotencyConflict. Raises SessionNotFound, and InvalidItem with the path of the field; then nothing is recorded.
    Joins the caller's transaction.
    """
    return record_append(session_id, items, author=author, idempotency_key=idempotency_key)[0]


def record_append(
    session_id: uuid.UUID,
    items: object,
    *,
    author: Any = None,
    idempotency_key: str | None = None,
    if_version: int | None = None,
) -> tuple[WriteIntent, bool]:
    """As `append_items`; returns the write and whether it is new, or was recorded earlier with the same key.

    `if_version`: the `version` of the session that the caller has seen. Raises SessionChanged if it is another now,
    and nothing is recorded; a repetition with the same key is told from that.
    """
    check_text("idempotency_key", idempotency_key, MAX_KEY)
    intake = prepare_items(items, max_items=conf.MAX_ITEMS_PER_WRITE, max_item_bytes=conf.MAX_ITEM_BYTES)
    return recording.record_append(
        session_id,
        chunks(intake.items, max_items=conf.CHUNK_ITEMS, max_bytes=conf.CHUNK_BYTES),
        items_total=len(intake.items),
        body_digest=intake.digest,
        author=author,
        idempotency_key=idempotency_key,
        if_version=if_version,
    )


def take_over_append(
    session_id: uuid.UUID, items: object, place: Place, *, author: Any = None, idempotency_key: str
) -> WriteIntent:
    """Record an append of which somebody else sent some requests, of 20 items each; delivery finds out which.

    Raises InvalidItem, SessionNotFound, SessionDeleted, IdempotencyConflict, and Conflict while a write of the session
    is open. Joins the caller's transaction.
    """
    intake = prepare_items(items, max_items=conf.MAX_ITEMS_PER_WRITE, max_item_bytes=conf.MAX_ITEM_BYTES)
    return record_take_over(
        session_id,
        cut_evenly(intake.items, API_ITEMS_PER_REQUEST),
        items_total=len(intake.items),
        body_digest=intake.digest,
        place=place,
        author=author,
        idempotency_key=idempotency_key,
    )


def digest_of_items(items: object) -> str:
    """The `body_digest` of an append of `items`. Raises InvalidItem."""
    return prepare_items(items, max_items=conf.MAX_ITEMS_PER_WRITE, max_item_bytes=conf.MAX_ITEM_BYTES).digest


def pop_item(session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None) -> WriteIntent:
    """Record that the newest item is to be removed; the settled write has it in `popped` (None: there was none).

    Raises SessionNotFound, IdempotencyConflict, InvalidInput. Joins the caller's transaction.
    """
    return record_pop(session_id, author=author, idempotency_key=idempotency_key)[0]


def record_pop(
    session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None, if_version: int | None = None
) -> tuple[WriteIntent, bool]:
    """As `pop_item`; takes and returns what `record_append` does."""
    check_text("idempotency_key", idempotency_key, MAX_KEY)
    return recording.record_pop(session_id, author=author, idempotency_key=idempotency_key, if_version=if_version)


def clear_session(session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None) -> WriteIntent:
    """Record that the conversation is to be deleted; the next append starts a new one.

    It supersedes everything queued before it. Raises SessionNotFound, IdempotencyConflict, InvalidInput. Joins the
    caller's transaction.
    """
    return record_clear(session_id, author=author, idempotency_key=idempotency_key)[0]


def record_clear(
    session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None, if_version: int | None = None
) -> tuple[WriteIntent, bool]:
    """As `clear_session`; takes and returns what `record_append` does."""
    check_text("idempotency_key", idempotency_key, MAX_KEY)
    return recording.record_clear(session_id, author=author, idempotency_key=idempotency_key, if_version=if_version)


def get_write(write_id: uuid.UUID) -> WriteIntent:
    """The write as it is now. Raises WriteNotFound."""
    write = WriteIntent.objects.using(alias()).filter(pk=write_id).first()
    if write is None:
        raise WriteNotFound(f"no write {write_id}")
    return write


def wait_for_write(write_id: uuid.UUID, *, timeout: float) -> WriteIntent:
    """Wait until the write has settled, and return it. `timeout`: seconds, at most WAIT_MAX.

    Raises WriteNotFound; WriteNotSettled with the write when it is still open then, or is ambiguous, which waiting
    does not change; RuntimeError inside a transaction.
    """
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


def cancel_write(write_id: uuid.UUID, *, actor: Any = None) -> WriteIntent:
    """Drop what of a write was not sent; what is in flight is settled first, and `items_saved` says what was saved.

    `actor`: who asks for it; somebody who neither wrote it nor owns the session is recorded as an operator. Raises
    WriteNotFound; IllegalMove for a settled or an ambiguous write; SessionDeleted when the author wants to keep the
    conversation of a deleted session. Joins the caller's transaction.
    """
    return recording.request_cancel(write_id, actor=actor)


def retry_write(write_id: uuid.UUID) -> WriteIntent:
    """Try a held or a refused write again. A refused one now comes after writes that were recorded later.

    Raises WriteNotFound, IllegalMove. Joins the caller's transaction.
    """
    return recording.retry(write_id)


def reconcile_write(write_id: uuid.UUID, *, actor: Any = None, reason: str = "checked again") -> WriteIntent:
    """Have an ambiguous write compared with the remote once more by a worker.

    Raises WriteNotFound, IllegalMove. Joins the caller's transaction.
    """
    write = get_write(write_id)
    newest = write.reconciliations.db_manager(alias()).order_by("-pk").values_list("pk", flat=True).first() or 0
    return resolving.resolve(
        write_id, Resolution.RECHECK, finding={}, verdict="", seen=newest, actor=actor, reason=reason
    )


def resolve_write(
    write_id: uuid.UUID, resolution: str, *, reason: str, actor: Any = None, evidence: str | None = None
) -> WriteIntent:
    """Carry out an operator's decision on an ambiguous write, after comparing the evidence once more.

    `resolution`: one of `Resolution`; `reason`: mandatory text; `evidence`: the `token` of the `inspect_write` on which
    the operator decided. Reads the remote (not inside a transaction). Raises InvalidInput, WriteNotFound, IllegalMove,
    RemoteReadFailed, and EvidenceChanged when the remote or the write is no longer what the operator was shown.
    """
    if resolution not in Resolution.values:
        raise InvalidInput("resolution", f"choose one of {', '.join(Resolution.values)}")
    inspection = _evidence_for(write_id, Resolution(resolution))
    if evidence is not None and inspection.verdict != Verdict.UNDECIDED and evidence != inspection.token:
        raise EvidenceChanged(f"the remote history of write {write_id} has changed since")
    if resolution not in inspection.possible:
        options = ", ".join(option.value for option in inspection.possible)
        raise InvalidInput("resolution", f"not possible with this evidence; choose one of {options}")
    return resolving.resolve(
        write_id,
        Resolution(resolution),
        finding=inspection.evidence,
        verdict=inspection.verdict,
        seen=inspection.seen,
        actor=actor,
        reason=reason,
    )


def _evidence_for(write_id: uuid.UUID, resolution: Resolution) -> Inspection:
    try:
        return inspect_write(write_id)
    except RemoteReadFailed as error:
        # Neither needs to know what is there; and a history that can never be read again must not block a session.
        if resolution in {Resolution.ABANDON, Resolution.RECHECK}:
            return unreadable(write_id, error)
        raise


def verify_session(session_id: uuid.UUID) -> Drift:
    """Compare what the journal says is saved with the remote history. Changes nothing.

    Raises SessionNotFound, RemoteReadFailed; RuntimeError inside a transaction.
    """
    return verify(_session(session_id))


def get_items(
    session_id: uuid.UUID, *, limit: int = 20, order: str = "asc", after: str | None = None
) -> dict[str, Any]:
    """A page of the remote history in the OpenAI list shape: `object`, `data`, `first_id`, `last_id`, `has_more`.

    `limit`: 1..100 items; `order`: ``asc`` or ``desc``; `after`: an item id, exclusive. A session without a
    conversation has an empty page, without a request. Raises InvalidInput, SessionNotFound, RemoteReadFailed;
    RuntimeError inside a transaction.
    """
    _check_page(limit, order, after)
    session = _session(session_id)
    if session.conversation_id is None:
        return _listing([], has_more=False)
    return _page(drivers.read(session, _page_call(session, limit, order, after)))


async def aget_items(
    session_id: uuid.UUID, *, limit: int = 20, order: str = "asc", after: str | None = None
) -> dict[str, Any]:
    """The async twin of `get_items`: awaits an `openai.AsyncOpenAI`."""
    _check_page(limit, order, after)
    await refuse_transaction()
    session = await in_thread(_session, session_id)
    if session.conversation_id is None:
        return _listing([], has_more=False)
    return _page(await drivers.aread(session, _page_call(session, limit, order, after)))


def _check_page(limit: object, order: object, after: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= PAGE_ITEMS:
        raise InvalidInput("limit", f"give a whole number from 1 to {PAGE_ITEMS}")
    if order not in {"asc", "desc"}:
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
    )


def _page(reply: Outcome) -> dict[str, Any]:
    if reply.kind is not OutcomeKind.APPLIED:
        raise drivers.read_failed(reply)
    return _listing(reply.items, has_more=reply.data["has_more"])


def get_latest_items(session_id: uuid.UUID, count: int) -> dict[str, Any]:
    """The newest `count` items (1..10,000), the oldest of them first, in the shape of `get_items`.

    `has_more` says whether there are older ones. Reads up to 100 items a request. Raises as `get_items`, and
    RemoteReadFailed also when the history changes faster than it can be read.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_LATEST:
        raise InvalidInput("latest", f"give a whole number from 1 to {MAX_LATEST}")
    session = _session(session_id)
    if session.conversation_id is None:
        return _listing([], has_more=False)
    conversation_id = session.conversation_id
    history = drivers.read_all(session, lambda deadline: read_latest(conversation_id, count, deadline))
    if history.problem is not None:
        raise drivers.read_failed(history.problem)
    return _listing(history.items[-count:], has_more=len(history.items) > count)


def _listing(items: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    first_id, last_id = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return {"object": "list", "data": items, "first_id": first_id, "last_id": last_id, "has_more": has_more}


def due_sessions() -> list[uuid.UUID]:
    """The sessions with work that nobody is doing, the longest waiting first: for delivery without a queue."""
    return list(ConversationSession.objects.using(alias()).due(timezone.now()).values_list("pk", flat=True))


def sweep() -> int:
    """Ring the doorbell of every session with work that nobody is doing; returns how many.

    A lost doorbell, a rolled-back enqueue or a dead worker strands nothing: whatever is recorded is found here. A
    session is not rung again before another lease could have run out, so that a slow queue does not fill up.
    """
    using, now = alias(), timezone.now()
    due = ConversationSession.objects.using(using).due(now)
    again = now + dt.timedelta(seconds=max(60.0 * conf.SWEEP_MINUTES, conf.REQUEST_TIMEOUT + conf.LEASE_GRACE))
    heartbeats.beat(Heartbeat.SWEEP, now, using=using)
    seen = list(due.values_list("pk", "wake_at")[:SWEEP_LIMIT])
    return sum(recording.postpone_wake(pk, seen=wake_at, until=again, using=using) for pk, wake_at in seen)


acreate_session = asynchronous(create_session)
aget_session = asynchronous(get_session)
aappend_items = asynchronous(append_items)
apop_item = asynchronous(pop_item)
aclear_session = asynchronous(clear_session)
aget_write = asynchronous(get_write)
acancel_write = asynchronous(cancel_write)


def _session(session_id: uuid.UUID) -> ConversationSession:
    session = ConversationSession.objects.using(alias()).filter(pk=session_id).first()
    if session is None:
        raise SessionNotFound(f"no session {session_id}")
    return session
