"""The public Python API: record writes, read what became of them, read the remote history.

Recording joins the caller's transaction; nothing is sent before it commits. Reading the remote, waiting and delivering
must not happen inside a transaction and raise RuntimeError there. Authorisation is the caller's: these functions take
ids and do not know who is asking.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Mapping
from typing import Any

from asgiref.sync import sync_to_async
from django.utils import timezone

from .conf import conf
from .delivery import drivers
from .delivery.drivers import adeliver, deliver
from .delivery.inquiry import inspect_write
from .delivery.verification import Drift, verify
from .exceptions import EvidenceChanged, InvalidInput, SessionNotFound, WriteNotFound, WriteNotSettled
from .items.chunking import chunks
from .items.intake import prepare_items
from .journal import recording, resolving
from .journal.locking import alias
from .models import ConversationSession, WriteIntent
from .remote.calls import PAGE_ITEMS, ListItems
from .states import CancelCause, OutcomeKind, Resolution

__all__ = [
    "aappend_items",
    "aclear_session",
    "acreate_session",
    "adeliver",
    "aget_write",
    "apop_item",
    "append_items",
    "await_for_write",
    "cancel_write",
    "clear_session",
    "create_session",
    "deliver",
    "due_sessions",
    "get_items",
    "get_session",
    "get_write",
    "inspect_write",
    "pop_item",
    "reconcile_write",
    "record_append",
    "record_clear",
    "record_pop",
    "resolve_write",
    "retry_write",
    "sweep",
    "verify_session",
    "wait_for_write",
]

SWEEP_LIMIT = 1000
"""Sessions whose doorbell one sweep rings; the next sweep goes on."""
MAX_KEY = 255


def create_session(
    *,
    owner: Any = None,
    key: str | None = None,
    metadata: Mapping[str, str] | None = None,
    conversation_id: str | None = None,
) -> ConversationSession:
    """Record a session. Its remote conversation is created with the first append.

    `owner`: a user or None; `key`: the application's name for it, unique per owner; `metadata`: at most 16 pairs of
    strings, keys up to 64 and values up to 512 characters (OpenAI's API document); `conversation_id`: an existing
    conversation to adopt. Raises InvalidInput, KeyTaken, ConversationTaken. Joins the caller's transaction.
    """
    _check_text("key", key, MAX_KEY)
    _check_text("conversation_id", conversation_id, 64)
    _check_metadata(metadata)
    return recording.create_session(owner=owner, key=key, metadata=metadata, conversation_id=conversation_id)


def get_session(*, owner: Any = None, key: str) -> ConversationSession:
    """The session that `owner` has under `key`. Raises SessionNotFound."""
    digest = ConversationSession.digest_of_key(owner and owner.pk, key)
    session = ConversationSession.objects.using(alias()).filter(key_digest=digest).first()
    if session is None:
        raise SessionNotFound("this owner has no session with this key")
    return session


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
    session_id: uuid.UUID, items: object, *, author: Any = None, idempotency_key: str | None = None
) -> tuple[WriteIntent, bool]:
    """As `append_items`; returns the write and whether it is new, or was recorded earlier with the same key."""
    _check_text("idempotency_key", idempotency_key, MAX_KEY)
    intake = prepare_items(items, max_items=conf.MAX_ITEMS_PER_WRITE, max_item_bytes=conf.MAX_ITEM_BYTES)
    return recording.record_append(
        session_id,
        chunks(intake.items, max_items=conf.CHUNK_ITEMS, max_bytes=conf.CHUNK_BYTES),
        items_total=len(intake.items),
        body_digest=intake.digest,
        author=author,
        idempotency_key=idempotency_key,
    )


def pop_item(session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None) -> WriteIntent:
    """Record that the newest item is to be removed; the settled write has it in `popped` (None: there was none).

    Raises SessionNotFound, IdempotencyConflict, InvalidInput. Joins the caller's transaction.
    """
    return record_pop(session_id, author=author, idempotency_key=idempotency_key)[0]


def record_pop(
    session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None
) -> tuple[WriteIntent, bool]:
    """As `pop_item`; returns what `record_append` returns."""
    _check_text("idempotency_key", idempotency_key, MAX_KEY)
    return recording.record_pop(session_id, author=author, idempotency_key=idempotency_key)


def clear_session(session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None) -> WriteIntent:
    """Record that the conversation is to be deleted; the next append starts a new one.

    It supersedes everything queued before it. Raises SessionNotFound, IdempotencyConflict, InvalidInput. Joins the
    caller's transaction.
    """
    return record_clear(session_id, author=author, idempotency_key=idempotency_key)[0]


def record_clear(
    session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None
) -> tuple[WriteIntent, bool]:
    """As `clear_session`; returns what `record_append` returns."""
    _check_text("idempotency_key", idempotency_key, MAX_KEY)
    return recording.record_clear(session_id, author=author, idempotency_key=idempotency_key)


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


def cancel_write(write_id: uuid.UUID) -> WriteIntent:
    """Drop what of a write was not sent; what is in flight is settled first, and `items_saved` says what was saved.

    Raises WriteNotFound; IllegalMove for a settled or an ambiguous write. Joins the caller's transaction.
    """
    return recording.request_cancel(write_id, cause=CancelCause.AUTHOR)


def retry_write(write_id: uuid.UUID) -> WriteIntent:
    """Try a held write again at once. Raises WriteNotFound, IllegalMove. Joins the caller's transaction."""
    return recording.release_hold(write_id)


def reconcile_write(write_id: uuid.UUID, *, actor: Any = None, reason: str = "checked again") -> WriteIntent:
    """Have an ambiguous write compared with the remote once more by a worker.

    Raises WriteNotFound, IllegalMove. Joins the caller's transaction.
    """
    write = get_write(write_id)
    newest = write.reconciliations.order_by("-pk").values_list("pk", flat=True).first() or 0
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
    inspection = inspect_write(write_id)
    if evidence is not None and evidence != inspection.token:
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
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= PAGE_ITEMS:
        raise InvalidInput("limit", f"give a whole number from 1 to {PAGE_ITEMS}")
    if order not in {"asc", "desc"}:
        raise InvalidInput("order", "choose asc or desc")
    _check_text("after", after, 128)
    session = _session(session_id)
    if session.conversation_id is None:
        return {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
    page = drivers.read(
        session,
        lambda not_after: ListItems(
            conversation_id=session.conversation_id or "",
            after=after or "",
            order=order,
            limit=limit,
            not_after=not_after,
        ),
    )
    if page.kind is not OutcomeKind.APPLIED:
        raise drivers.read_failed(page)
    ids = page.ids
    return {
        "object": "list",
        "data": page.items,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "has_more": page.data["has_more"],
    }


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
    seen = list(due.values_list("pk", "wake_at")[:SWEEP_LIMIT])
    return sum(recording.postpone_wake(pk, seen=wake_at, until=again, using=using) for pk, wake_at in seen)


acreate_session = sync_to_async(create_session)
aappend_items = sync_to_async(append_items)
apop_item = sync_to_async(pop_item)
aclear_session = sync_to_async(clear_session)
aget_write = sync_to_async(get_write)
await_for_write = sync_to_async(wait_for_write)


def _session(session_id: uuid.UUID) -> ConversationSession:
    session = ConversationSession.objects.using(alias()).filter(pk=session_id).first()
    if session is None:
        raise SessionNotFound(f"no session {session_id}")
    return session


def _check_text(field: str, value: object, length: int) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not 0 < len(value) <= length or not value.isprintable():
        raise InvalidInput(field, f"give 1 to {length} printable characters")


def _check_metadata(metadata: object) -> None:
    if metadata is None:
        return
    if not isinstance(metadata, Mapping) or len(metadata) > 16:
        raise InvalidInput("metadata", "give at most 16 pairs of strings")
    for name, value in metadata.items():
        if not isinstance(name, str) or not 0 < len(name) <= 64:
            raise InvalidInput("metadata", "its keys are strings of 1 to 64 characters")
        if not isinstance(value, str) or len(value) > 512:
            raise InvalidInput(f"metadata.{name}", "give a string of at most 512 characters")
        _check_encodable(f"metadata.{name}", name + value)


def _check_encodable(field: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "it holds an unpaired surrogate, which JSON cannot carry") from None
