"""What authors do: record writes, and ask for a cancellation.

Every function joins the caller's transaction, or opens one of its own where there is none; what it records counts
once that transaction commits, and the doorbell rings only then.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from typing import Any

from django.db import connections, transaction
from django.db.models import F

from convsessions import enqueue
from convsessions.exceptions import IdempotencyConflict, IllegalMove, SessionChanged, SessionDeleted, WriteNotFound
from convsessions.items import codec
from convsessions.items.chunking import Chunk
from convsessions.items.intake import Intake
from convsessions.models import ConversationSession, Reconciliation, WriteChunk, WriteIntent
from convsessions.states import CancelCause, HoldCode, RefusalPolicy, WriteKind, WriteState
from convsessions.values import as_uuid, check_reason

from .chunks import drop_chunks
from .locking import alias, lock_session
from .restoring import in_doubt

BATCH_BYTES = 2 * 1024 * 1024
"""Bytes of payload an INSERT, well below MariaDB's default packet of 16 MiB."""
BATCH_ROWS = 100
"""Rows an INSERT, below SQLite's limit of parameters."""


def record_append(
    session_id: uuid.UUID,
    intake: Intake,
    chunks: Iterable[Chunk],
    *,
    on_refusal: RefusalPolicy = RefusalPolicy.STOP,
    author: Any = None,
    idempotency_key: str | None = None,
    if_version: int | None = None,
) -> tuple[WriteIntent, bool]:
    """Record an append; returns the write and whether it is new.

    Raises SessionNotFound, IdempotencyConflict, SessionDeleted, SessionChanged (the session is not in `if_version`).
    An append of nothing is saved at once, since nothing has to be sent. `chunks`: the items of `intake`, cut; they are
    drawn and stored in batches.
    """
    new = append_row(intake, on_refusal=on_refusal, author=author)
    using = alias()
    with transaction.atomic(using=using):
        write, is_new = record(
            session_id, new, idempotency_key, using=using, nothing_to_do=not intake.items, if_version=if_version
        )
        if is_new:
            for batch in batches(chunks):
                WriteChunk.objects.using(using).bulk_create([chunk_row(write, chunk) for chunk in batch])
    return write, is_new


def append_row(intake: Intake, *, on_refusal: RefusalPolicy = RefusalPolicy.STOP, author: Any) -> WriteIntent:
    """The row, not saved yet, for an append of `intake`. Another policy makes another body."""
    stops = on_refusal == RefusalPolicy.STOP
    return WriteIntent(
        kind=WriteKind.APPEND,
        items_total=len(intake.items),
        items_omitted=intake.omitted,
        body_digest=intake.digest if stops else codec.digest(f"{on_refusal} {intake.digest}"),
        on_refusal=on_refusal,
        author=author,
    )


def chunk_row(write: WriteIntent, chunk: Chunk, **fields: Any) -> WriteChunk:
    """The row, not saved yet, for `chunk` of `write`."""
    return WriteChunk(
        write=write,
        first_item=chunk.first_item,
        item_count=chunk.item_count,
        payload=chunk.payload,
        original=chunk.original,
        **fields,
    )


def record_pop(
    session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None, if_version: int | None = None
) -> tuple[WriteIntent, bool]:
    """Record the removal of the newest item; contract as `record_append`."""
    new = WriteIntent(kind=WriteKind.POP, body_digest=codec.digest("pop"), author=author)
    using = alias()
    with transaction.atomic(using=using):
        return record(session_id, new, idempotency_key, using=using, if_version=if_version)


def record_clear(
    session_id: uuid.UUID,
    *,
    author: Any = None,
    idempotency_key: str | None = None,
    if_version: int | None = None,
    body: str = "clear",
    erase: bool = False,
) -> tuple[WriteIntent, bool]:
    """Record a clear, which supersedes everything queued before it; contract as `record_append`.

    Writes that have nothing in flight are cancelled here. One whose request is in flight is marked, and its worker
    settles that request first. `body`: what the idempotency key stands for. `erase`: every item is deleted before the
    conversation, and then the content of the session's writes so far is removed from the journal.
    """
    body = f"{body} erase" if erase else body
    new = WriteIntent(kind=WriteKind.CLEAR, body_digest=codec.digest(body), author=author, erase=erase)
    using = alias()
    with transaction.atomic(using=using):
        write, is_new = record(session_id, new, idempotency_key, using=using, if_version=if_version)
        if is_new:
            _supersede(write, using=using)
    return write, is_new


def request_cancel(write_id: uuid.UUID, *, actor: Any = None, reason: str = "") -> WriteIntent:
    """Cancel a write of which nothing is in flight, or have its worker cancel the rest.

    `actor`: who asks for it, None for the author; `reason`: with one, both are kept as a `Reconciliation`.
    Raises WriteNotFound, IllegalMove, SessionDeleted, InvalidInput.
    """
    check_reason(reason, required=False)
    using = alias()
    with transaction.atomic(using=using):
        write, now = lock_write(write_id, using=using)
        if write.state == WriteState.AMBIGUOUS or write.settled:
            raise IllegalMove(f"write {write.pk} is {write.state} and cannot be cancelled by its author")
        write.cancel_cause = _cause_of(write, actor)
        if write.session.deleted_at is not None and write.cancel_cause == CancelCause.AUTHOR:
            raise SessionDeleted(f"session {write.session.pk} was deleted, and its conversation is to go with it")
        if write.state == WriteState.PENDING and not in_doubt(write, using=using):
            write.move(WriteState.CANCELLED)
            write.settled_at = now
            drop_chunks(write.chunks.db_manager(using).all(), now)
        write.hold_code, write.next_attempt_at = HoldCode.NONE, None
        write.save(update_fields=["state", "cancel_cause", "settled_at", "hold_code", "next_attempt_at"], using=using)
        _keep(write, "cancel", actor, reason, using=using)
        make_due(write.session, now, using=using)
    return write


def _keep(write: WriteIntent, act: str, actor: Any, reason: str, *, using: str) -> None:
    """Keep who did what to `write`, and why; nothing where no reason was given."""
    if reason:
        kept = Reconciliation(write=write, evidence={"act": act}, actor=actor, reason=reason)
        kept.save(force_insert=True, using=using)


def _cause_of(write: WriteIntent, actor: Any) -> CancelCause:
    owners = {write.author_id, write.session.owner_id} - {None}
    return CancelCause.AUTHOR if actor is None or actor.pk in owners else CancelCause.OPERATOR


def retry(write_id: uuid.UUID, *, actor: Any = None, reason: str = "") -> WriteIntent:
    """Have a held or refused write tried again, after a person mended the cause.

    `actor`, `reason`, and what it raises: as `request_cancel`.

    A refused write goes to the end of the queue: writes that were recorded after it have been applied meanwhile.
    """
    check_reason(reason, required=False)
    using = alias()
    with transaction.atomic(using=using):
        write, now = lock_write(write_id, using=using)
        if write.state == WriteState.REFUSED:
            _reopen(write, using=using)
        elif write.settled or write.state == WriteState.AMBIGUOUS:
            raise IllegalMove(f"write {write.pk} is {write.state}; only a waiting or refused write can be tried again")
        write.hold_code, write.next_attempt_at, write.failures = HoldCode.NONE, None, 0
        write.save(update_fields=["hold_code", "next_attempt_at", "failures"], using=using)
        _keep(write, "retry", actor, reason, using=using)
        make_due(write.session, now, using=using)
    return write


def _reopen(write: WriteIntent, *, using: str) -> None:
    if write.kind != WriteKind.CLEAR:  # of a deleted session, the deletion itself can be tried again
        check_writable(write.session)
    if write.generation is not None and _is_cleared_since(write, using=using):
        raise IllegalMove(f"write {write.pk} was begun before the session was cleared and cannot be tried again")
    if write.payload_purged_at is not None:
        raise IllegalMove(f"the content of write {write.pk} was purged, so it cannot be tried again")
    write.move(WriteState.PENDING)
    write.sequence, write.settled_at, write.half_pairs = write.session.last_sequence + 1, None, []
    write.error_code, write.error_param = "", ""
    fields = ["state", "sequence", "settled_at", "half_pairs", "error_code", "error_param"]
    write.save(update_fields=fields, using=using)
    chunks = write.chunks.db_manager(using).only("state", "first_item", "write_id")
    last_saved = chunks.filter(state=WriteState.SAVED).last()
    # What was skipped before something was saved stays out: sent now, it would come after what followed it.
    first = 0 if last_saved is None else last_saved.first_item
    for chunk in chunks.filter(state=WriteState.REFUSED, first_item__gte=first):
        chunk.move(WriteState.PENDING)
        chunk.settled_at, chunk.error_code, chunk.error_param = None, "", ""
        chunk.save(update_fields=["state", "settled_at", "error_code", "error_param"], using=using)
    ConversationSession.objects.using(using).filter(pk=write.session.pk).update(last_sequence=write.sequence)


def _is_cleared_since(write: WriteIntent, *, using: str) -> bool:
    """Whether a clear took away, or is about to take away, the conversation in which `write` was begun."""
    queue = WriteIntent.objects.using(using).queue(write.session.pk)
    clears = queue.filter(kind=WriteKind.CLEAR).select_for_update()
    return write.generation != write.session.generation or clears.first() is not None


def lock_write(write_id: uuid.UUID, *, using: str) -> tuple[WriteIntent, dt.datetime]:
    """Lock the session of a write, then read the write; its `session` is the locked row. Raises WriteNotFound.

    Requires the caller's transaction on `using`.
    """
    writes = WriteIntent.objects.using(using)
    session_id = writes.filter(pk=as_uuid(write_id, WriteNotFound)).values_list("session_id", flat=True).first()
    if session_id is None:
        raise WriteNotFound(f"no write {write_id}")
    locked, now = lock_session(session_id, using=using)
    # A locking read, because under REPEATABLE READ a plain one shows the caller's old snapshot.
    write = writes.select_for_update().get(pk=write_id)
    write.session = locked
    return write, now


def make_due(locked: ConversationSession, now: dt.datetime, *, using: str, last_sequence: int | None = None) -> None:
    """Have somebody look at a locked session soon, of which a write has changed. Requires the caller's transaction.

    The holder of a live lease looks for more work under the lock before it gives the lease back, so it needs no
    doorbell; should it be dead, the sweep comes when the lease ends. `last_sequence`: that of a write which is new.
    """
    row = ConversationSession.objects.using(using).filter(pk=locked.pk)
    changes = {"version": F("version") + 1, "updated_at": now, "last_sequence": last_sequence or F("last_sequence")}
    if locked.lease_expires_at is not None and locked.lease_expires_at > now:
        row.update(**changes)
        return
    row.update(**changes, wake_at=now)
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


def check_writable(locked: ConversationSession, if_version: int | None = None) -> None:
    """Raise SessionDeleted, or SessionChanged if the locked session is not in `if_version` (None: in any)."""
    if locked.deleted_at is not None:
        raise SessionDeleted(f"session {locked.pk} was deleted")
    if if_version is not None and locked.version != if_version:
        raise SessionChanged(f"session {locked.pk} has changed since")


def record(
    session_id: uuid.UUID,
    new: WriteIntent,
    idempotency_key: str | None,
    *,
    using: str,
    nothing_to_do: bool = False,
    if_version: int | None = None,
) -> tuple[WriteIntent, bool]:
    """Record `new` as the last write of its session, unless one was recorded with the same idempotency key before.

    `nothing_to_do`: it is saved at once. Requires the caller's transaction on `using`; contract as `record_append`.
    """
    locked, now = lock_session(session_id, using=using)
    new.session, new.idempotency_key = locked, idempotency_key
    if idempotency_key is not None:
        new.idempotency_digest = codec.digest(idempotency_key)
        replayed = _replayed(new, using=using)
        if replayed is not None:
            return replayed, False
    check_writable(locked, if_version)
    new.sequence = locked.last_sequence + 1
    if nothing_to_do:
        new.state, new.settled_at = WriteState.SAVED, now
    new.save(force_insert=True, using=using)
    if nothing_to_do:
        row = ConversationSession.objects.using(using).filter(pk=locked.pk)
        row.update(last_sequence=new.sequence, version=F("version") + 1, updated_at=now)
    else:
        make_due(locked, now, using=using, last_sequence=new.sequence)
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
    # Locking reads, as in `lock_write`.
    before = WriteIntent.objects.using(using).queue(clear.session_id).filter(sequence__lt=clear.sequence)
    locked = list(before.select_for_update().values_list("pk", "state", "erase"))
    idle = before.filter(state__in=(WriteState.PENDING, WriteState.AMBIGUOUS)).order_by()
    now = clear.created_at
    if not clear.erase and any(erase for _, _, erase in locked):
        clear.erase = True  # what was promised for the conversation holds, whichever clear takes it away
        clear.save(update_fields=["erase"], using=using)
    dropped = [pk for pk, state, _ in locked if state != WriteState.SENDING]
    drop_chunks(WriteChunk.objects.using(using).filter(write__in=dropped), now)
    idle.update(state=WriteState.CANCELLED, cancel_cause=CancelCause.CLEAR, settled_at=now, hold_code=HoldCode.NONE)
    before.order_by().update(cancel_cause=CancelCause.CLEAR, hold_code=HoldCode.NONE, next_attempt_at=None)


def batches(chunks: Iterable[Chunk]) -> Iterable[list[Chunk]]:
    """`chunks` in lists of what one INSERT takes."""
    rows: list[Chunk] = []
    size = 0
    for chunk in chunks:
        chunk_size = len(chunk.payload) + len(chunk.original or "")
        if rows and (len(rows) >= BATCH_ROWS or size + chunk_size > BATCH_BYTES):
            yield rows
            rows, size = [], 0
        rows.append(chunk)
        size += chunk_size
    if rows:
        yield rows
