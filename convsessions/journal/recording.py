"""What authors do: record sessions and writes, and ask for a cancellation.

Every function joins the caller's transaction, or opens one of its own where there is none; what it records counts
once that transaction commits, and the doorbell rings only then.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError, connections, transaction

from convsessions import enqueue
from convsessions.exceptions import ConversationTaken, IdempotencyConflict, IllegalMove, KeyTaken, WriteNotFound
from convsessions.items import codec
from convsessions.items.chunking import Chunk
from convsessions.models import ConversationSession, WriteChunk, WriteIntent
from convsessions.states import CancelCause, HoldCode, WriteKind, WriteState

from .locking import alias, lock_session
from .turn import drop_chunks

BATCH_BYTES = 2 * 1024 * 1024
"""Bytes of payload an INSERT, well below MariaDB's default packet of 16 MiB."""
BATCH_ROWS = 100
"""Rows an INSERT, below SQLite's limit of parameters."""


def create_session(
    *,
    owner: Any = None,
    key: str | None = None,
    metadata: Mapping[str, str] | None = None,
    conversation_id: str | None = None,
) -> ConversationSession:
    """Record a session. Raises KeyTaken, ConversationTaken."""
    using = alias()
    digest = None if key is None else ConversationSession.digest_of_key(owner and owner.pk, key)
    session = ConversationSession(
        owner=owner, key=key, key_digest=digest, metadata=dict(metadata or {}), conversation_id=conversation_id
    )
    try:
        with transaction.atomic(using=using):
            session.save(force_insert=True, using=using)
    except IntegrityError:
        rows = ConversationSession.objects.using(using)
        if digest is not None and rows.filter(key_digest=digest).exists():
            raise KeyTaken("this owner has a session with this key") from None
        if conversation_id is not None and rows.filter(conversation_id=conversation_id).exists():
            raise ConversationTaken("another session stands for this conversation") from None
        raise
    return session


def record_append(
    session_id: uuid.UUID,
    chunks: Iterable[Chunk],
    *,
    items_total: int,
    body_digest: str,
    author: Any = None,
    idempotency_key: str | None = None,
) -> tuple[WriteIntent, bool]:
    """Record an append; returns the write and whether it is new. Raises SessionNotFound, IdempotencyConflict.

    An append of nothing is saved at once, since nothing has to be sent. The chunks are drawn and stored in batches.
    """
    new = WriteIntent(kind=WriteKind.APPEND, items_total=items_total, body_digest=body_digest, author=author)
    using = alias()
    with transaction.atomic(using=using):
        write, is_new = _record(session_id, new, idempotency_key, using=using, nothing_to_do=items_total == 0)
        if is_new:
            for batch in _batches(chunks):
                rows = [
                    WriteChunk(write=write, first_item=c.first_item, item_count=c.item_count, payload=c.payload)
                    for c in batch
                ]
                WriteChunk.objects.using(using).bulk_create(rows)
    return write, is_new


def record_pop(
    session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None
) -> tuple[WriteIntent, bool]:
    """Record the removal of the newest item; contract as `record_append`."""
    new = WriteIntent(kind=WriteKind.POP, body_digest=codec.digest("pop"), author=author)
    using = alias()
    with transaction.atomic(using=using):
        return _record(session_id, new, idempotency_key, using=using)


def record_clear(
    session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None
) -> tuple[WriteIntent, bool]:
    """Record a clear, which supersedes everything queued before it; contract as `record_append`.

    Writes that have nothing in flight are cancelled here. One whose request is in flight is marked, and its worker
    settles that request first.
    """
    new = WriteIntent(kind=WriteKind.CLEAR, body_digest=codec.digest("clear"), author=author)
    using = alias()
    with transaction.atomic(using=using):
        write, is_new = _record(session_id, new, idempotency_key, using=using)
        if is_new:
            _supersede(write, using=using)
    return write, is_new


def request_cancel(write_id: uuid.UUID, *, cause: CancelCause) -> WriteIntent:
    """Cancel a write of which nothing is in flight, or have its worker cancel the rest.

    Raises WriteNotFound, IllegalMove.
    """
    using = alias()
    with transaction.atomic(using=using):
        write, now = lock_write(write_id, using=using)
        if write.state == WriteState.AMBIGUOUS or write.settled:
            raise IllegalMove(f"write {write.pk} is {write.state} and cannot be cancelled by its author")
        write.cancel_cause = cause
        if write.state == WriteState.PENDING:
            write.move(WriteState.CANCELLED)
            write.settled_at = now
            drop_chunks(write.chunks.all(), now)
        write.hold_code, write.next_attempt_at = HoldCode.NONE, None
        write.save(update_fields=["state", "cancel_cause", "settled_at", "hold_code", "next_attempt_at"], using=using)
        make_due(write.session, now, using=using)
    return write


def release_hold(write_id: uuid.UUID) -> WriteIntent:
    """Have a held write tried again at once, after a person mended the cause. Raises WriteNotFound, IllegalMove."""
    using = alias()
    with transaction.atomic(using=using):
        write, now = lock_write(write_id, using=using)
        if write.settled or write.state == WriteState.AMBIGUOUS:
            raise IllegalMove(f"write {write.pk} is {write.state}; only a waiting write can be tried again")
        write.hold_code, write.next_attempt_at, write.failures = HoldCode.NONE, None, 0
        write.save(update_fields=["hold_code", "next_attempt_at", "failures"], using=using)
        make_due(write.session, now, using=using)
    return write


def lock_write(write_id: uuid.UUID, *, using: str) -> tuple[WriteIntent, dt.datetime]:
    """Lock the session of a write, then read the write; its `session` is the locked row. Raises WriteNotFound.

    Requires the caller's transaction on `using`.
    """
    writes = WriteIntent.objects.using(using)
    session_id = writes.filter(pk=write_id).values_list("session_id", flat=True).first()
    if session_id is None:
        raise WriteNotFound(f"no write {write_id}")
    locked, now = lock_session(session_id, using=using)
    # A locking read, because under REPEATABLE READ a plain one shows the caller's old snapshot.
    write = writes.select_for_update().get(pk=write_id)
    write.session = locked
    return write, now


def make_due(locked: ConversationSession, now: dt.datetime, *, using: str) -> None:
    """Have somebody look at a locked session soon. Requires the caller's transaction.

    The holder of a live lease looks for more work under the lock before it gives the lease back, so it needs no
    doorbell; should it be dead, the sweep comes when the lease ends.
    """
    if locked.lease_expires_at is not None and locked.lease_expires_at > now:
        return
    ConversationSession.objects.using(using).filter(pk=locked.pk).update(wake_at=now)
    enqueue.wake(locked.pk, using=using)


def postpone_wake(session_id: uuid.UUID, *, seen: dt.datetime | None, until: dt.datetime, using: str) -> bool:
    """Ring a session's doorbell and have the sweep skip it until `until`, unless `wake_at` is not what was `seen`.

    Opens its own transaction. The row is locked by its primary key before the index on `wake_at` is touched, as every
    turn does it: the other order is a deadlock on MySQL. Whoever has it locked is at work; it is not waited for.
    """
    features = connections[using].features
    rows = ConversationSession.objects.using(using).select_for_update(
        skip_locked=features.has_select_for_update_skip_locked, no_key=features.has_select_for_no_key_update
    )
    with transaction.atomic(using=using):
        locked = rows.filter(pk=session_id).first()
        if locked is None or locked.wake_at != seen:
            return False
        ConversationSession.objects.using(using).filter(pk=session_id).update(wake_at=until)
        enqueue.wake(session_id, using=using)
        return True


def _record(
    session_id: uuid.UUID, new: WriteIntent, idempotency_key: str | None, *, using: str, nothing_to_do: bool = False
) -> tuple[WriteIntent, bool]:
    locked, now = lock_session(session_id, using=using)
    new.session, new.idempotency_key = locked, idempotency_key
    if idempotency_key is not None:
        new.idempotency_digest = codec.digest(idempotency_key)
        replayed = _replayed(new, using=using)
        if replayed is not None:
            return replayed, False
    new.sequence = locked.last_sequence + 1
    if nothing_to_do:
        new.state, new.settled_at = WriteState.SAVED, now
    new.save(force_insert=True, using=using)
    ConversationSession.objects.using(using).filter(pk=locked.pk).update(last_sequence=new.sequence, updated_at=now)
    if not nothing_to_do:
        make_due(locked, now, using=using)
    return new, True


def _replayed(new: WriteIntent, *, using: str) -> WriteIntent | None:
    """The write that was recorded with this idempotency key, if any. Raises IdempotencyConflict."""
    same_key = WriteIntent.objects.using(using).filter(
        session_id=new.session_id, idempotency_digest=new.idempotency_digest
    )
    write = same_key.select_for_update().first()
    if write is not None and (write.kind, write.body_digest) != (new.kind, new.body_digest):
        raise IdempotencyConflict(f"idempotency key already used for write {write.pk}, which has another body")
    return write


def _supersede(clear: WriteIntent, *, using: str) -> None:
    before = WriteIntent.objects.using(using).queue(clear.session_id).filter(sequence__lt=clear.sequence)
    idle = before.filter(state__in=(WriteState.PENDING, WriteState.AMBIGUOUS)).order_by()
    now = clear.created_at
    drop_chunks(WriteChunk.objects.using(using).filter(write__in=list(idle.values_list("pk", flat=True))), now)
    idle.update(state=WriteState.CANCELLED, cancel_cause=CancelCause.CLEAR, settled_at=now, hold_code=HoldCode.NONE)
    before.order_by().update(cancel_cause=CancelCause.CLEAR, hold_code=HoldCode.NONE, next_attempt_at=None)


def _batches(chunks: Iterable[Chunk]) -> Iterable[list[Chunk]]:
    rows: list[Chunk] = []
    size = 0
    for chunk in chunks:
        if rows and (len(rows) >= BATCH_ROWS or size + len(chunk.payload) > BATCH_BYTES):
            yield rows
            rows, size = [], 0
        rows.append(chunk)
        size += len(chunk.payload)
    if rows:
        yield rows
