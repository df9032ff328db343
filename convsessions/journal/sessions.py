"""What authors do to sessions as such: record them, rename them, set their metadata, delete them.

Every function joins the caller's transaction, or opens one of its own where there is none.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from convsessions.exceptions import ConversationTaken, IdempotencyConflict, KeyTaken
from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import WriteKind, WriteState

from .locking import alias, lock_session
from .recording import check_writable, record, record_clear


def create_session(
    *,
    owner: Any = None,
    key: str | None = None,
    metadata: Mapping[str, str] | None = None,
    conversation_id: str | None = None,
    creation: tuple[str, str] = ("", ""),
) -> tuple[ConversationSession, bool]:
    """Record a session; returns it and whether it is new. Raises KeyTaken, ConversationTaken, IdempotencyConflict.

    `creation`: digests of the idempotency key and of the body; a second session with the same ones is the first.
    """
    using = alias()
    creation_digest, body_digest = creation
    session = ConversationSession(
        owner=owner, metadata=dict(metadata or {}), conversation_id=conversation_id,
        creation_digest=creation_digest or None, body_digest=body_digest,
    )  # fmt: skip
    _name(session, key)
    try:
        with transaction.atomic(using=using):
            session.save(force_insert=True, using=using)
    except IntegrityError:
        with transaction.atomic(using=using):  # the caller may have none
            earlier = created_before(creation, locking=True)
        if earlier is not None:
            return earlier, False
        _explain(session, using=using)
        raise
    return session, True


def created_before(creation: tuple[str, str], *, locking: bool = False) -> ConversationSession | None:
    """The session that was recorded with this idempotency key. Raises IdempotencyConflict if its body was another.

    `locking`: also one that came after the snapshot of the caller's transaction, which is then required.
    """
    creation_digest, body_digest = creation
    if not creation_digest:
        return None
    rows = ConversationSession.objects.using(alias())
    session = (rows.select_for_update() if locking else rows).filter(creation_digest=creation_digest).first()
    if session is not None and session.body_digest != body_digest:
        raise IdempotencyConflict(f"idempotency key already used for session {session.pk}, which had another body")
    return session


def rename(session_id: uuid.UUID, key: str | None, *, if_version: int | None = None) -> ConversationSession:
    """Give a session another key, or none. Raises SessionNotFound, SessionDeleted, SessionChanged, KeyTaken."""
    using = alias()
    with transaction.atomic(using=using):
        locked, now = lock_session(session_id, using=using)
        check_writable(locked, if_version)
        _name(locked, key)
        locked.updated_at = now
        try:
            with transaction.atomic(using=using):
                ConversationSession.objects.using(using).filter(pk=locked.pk).update(
                    key=locked.key, key_hash=locked.key_hash, key_digest=locked.key_digest,
                    version=F("version") + 1, updated_at=now,
                )  # fmt: skip
        except IntegrityError:
            _explain(locked, using=using)
            raise
    return locked


def record_metadata(
    session_id: uuid.UUID,
    metadata: Mapping[str, str],
    *,
    author: Any = None,
    idempotency_key: str | None = None,
    body_digest: str,
    if_version: int | None = None,
) -> tuple[WriteIntent, bool]:
    """Record a change of metadata; contract as `recording.record_append`.

    Where there is neither a conversation nor a write that could create one, only the row has to change, at once.
    """
    new = WriteIntent(kind=WriteKind.METADATA, metadata=dict(metadata), body_digest=body_digest, author=author)
    using = alias()
    with transaction.atomic(using=using):
        locked, _ = lock_session(session_id, using=using)
        # A locking read: a plain one shows the caller's old snapshot under REPEATABLE READ.
        is_idle = WriteIntent.objects.using(using).queue(locked.pk).select_for_update().first() is None
        is_local = locked.conversation_id is None and is_idle
        write, is_new = record(
            session_id, new, idempotency_key, using=using, nothing_to_do=is_local, if_version=if_version
        )
        if is_new and is_local:
            ConversationSession.objects.using(using).filter(pk=session_id).update(metadata=write.metadata)
    return write, is_new


def delete_session(
    session_id: uuid.UUID,
    *,
    author: Any = None,
    idempotency_key: str | None = None,
    if_version: int | None = None,
    erase: bool = False,
) -> tuple[WriteIntent, bool]:
    """Record a clear after which the session takes no more writes and its key is free; contract as `record_append`.

    Of a session that is deleted already it returns the clear that was recorded then.
    """
    using = alias()
    with transaction.atomic(using=using):
        locked, now = lock_session(session_id, using=using)
        if locked.deleted_at is not None:
            clears = WriteIntent.objects.using(using).filter(session_id=session_id, kind=WriteKind.CLEAR)
            return _erasing_too(clears.select_for_update().latest("sequence"), locked, erase=erase, using=using), False
        write, is_new = record_clear(
            session_id,
            author=author,
            idempotency_key=idempotency_key,
            if_version=if_version,
            body="delete",
            erase=erase,
        )
        if is_new:
            ConversationSession.objects.using(using).filter(pk=session_id).update(deleted_at=now, key_digest=None)
    return write, is_new


def _erasing_too(clear: WriteIntent, locked: ConversationSession, *, erase: bool, using: str) -> WriteIntent:
    """`clear`, which erases now as well, where that is asked for and nothing of it was begun."""
    if erase and not clear.erase and clear.state == WriteState.PENDING:
        clear.erase = True
        clear.save(update_fields=["erase"], using=using)
        ConversationSession.objects.using(using).filter(pk=locked.pk).update(version=F("version") + 1)
    return clear


def _name(session: ConversationSession, key: str | None) -> None:
    session.key = key
    session.key_hash = None if key is None else ConversationSession.hash_of_key(key)
    session.key_digest = None if key is None else ConversationSession.digest_of_key(session.owner_id, key)


def _explain(session: ConversationSession, *, using: str) -> None:
    """Raise what the failure to store `session` means, if it is known."""
    # Locking reads, because under REPEATABLE READ a plain one may not see the row in the way.
    others = ConversationSession.objects.using(using).exclude(pk=session.pk).select_for_update()
    with transaction.atomic(using=using):  # the caller may have none
        if session.key_digest is not None and others.filter(key_digest=session.key_digest).first():
            raise KeyTaken("this owner has a session with this key") from None
        if session.conversation_id is not None and others.filter(conversation_id=session.conversation_id).first():
            raise ConversationTaken("another session stands for this conversation") from None
