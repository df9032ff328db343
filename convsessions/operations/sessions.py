"""Sessions as such: create or adopt, find, change."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from django.db import transaction

from convsessions.conf import conf
from convsessions.delivery import drivers
from convsessions.delivery.pages import read_failed
from convsessions.delivery.threads import asynchronous
from convsessions.exceptions import ConversationTaken, InvalidInput, SessionNotFound
from convsessions.items import codec
from convsessions.items.chunking import chunks
from convsessions.items.intake import Intake
from convsessions.journal import recording, sessions
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, WriteIntent
from convsessions.remote.calls import RetrieveConversation
from convsessions.states import OutcomeKind, WriteKind
from convsessions.values import MAX_CONVERSATION_ID, MAX_KEY, as_uuid, check_metadata, check_text

from .intake import take_in


class Unchanged(enum.Enum):
    UNCHANGED = enum.auto()


UNCHANGED: Final = Unchanged.UNCHANGED
"""What `update_session` leaves as it is."""


class Recorded(NamedTuple):
    """A session as it is now, the last write that was recorded with it, if any, and whether this call recorded it."""

    session: ConversationSession
    write: WriteIntent | None
    is_new: bool


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
    conversation to adopt, not checked (`open_session` does). Raises InvalidInput, KeyTaken, ConversationTaken. Joins
    the caller's transaction.
    """
    _check(key, metadata, conversation_id)
    return sessions.create_session(owner=owner, key=key, metadata=metadata, conversation_id=conversation_id)[0]


def open_session(
    *,
    owner: Any = None,
    key: str | None = None,
    metadata: Mapping[str, str] | None = None,
    conversation_id: str | None = None,
    items: object = None,
    author: Any = None,
    idempotency_key: str | None = None,
) -> Recorded:
    """Record a session as `create_session` does, and with it its first `items`, or neither.

    A `conversation_id` is looked for at the API before; its metadata is taken over, and what `metadata` says is
    recorded as a change. `idempotency_key`: a second call of this owner with the same key and arguments returns the
    first call's session; with others it raises IdempotencyConflict. Raises also InvalidItem, and with a
    `conversation_id` RemoteReadFailed, and RuntimeError inside a transaction; without one it joins the caller's.
    """
    _check(key, metadata, conversation_id)
    check_text("idempotency_key", idempotency_key, MAX_KEY)
    intake = None if items is None else take_in(items)
    body = [key, dict(metadata or {}), conversation_id, intake and intake.digest]
    creation = _creation(owner, idempotency_key, body)
    earlier = sessions.created_before(creation)
    if earlier is None:
        session, is_new = _open(owner, key, metadata, conversation_id, intake, author, creation)
    else:
        session, is_new = earlier, False
    last = (intake is not None) + bool(conversation_id and metadata)
    write = WriteIntent.objects.using(alias()).filter(session=session, sequence=last).first()
    return Recorded(session, write, is_new)


def _open(
    owner: Any,
    key: str | None,
    metadata: Mapping[str, str] | None,
    conversation_id: str | None,
    intake: Intake | None,
    author: Any,
    creation: tuple[str, str],
) -> tuple[ConversationSession, bool]:
    try:
        known = metadata if conversation_id is None else check_conversation(conversation_id, owner=owner)
    except ConversationTaken:
        earlier = sessions.created_before(creation)  # by a repetition of this call, which came first a moment ago
        if earlier is None:
            raise
        return earlier, False
    with transaction.atomic(using=alias()):
        session, is_new = sessions.create_session(
            owner=owner, key=key, metadata=known, conversation_id=conversation_id, creation=creation
        )
        if is_new and conversation_id is not None and metadata:
            sessions.record_metadata(session.pk, metadata, author=author, body_digest=_digest(metadata))
        if is_new and intake is not None:
            _record_first(session, intake, author)
    if is_new:
        session.refresh_from_db(using=alias())
    return session, is_new


def check_conversation(conversation_id: str, *, owner: Any = None) -> dict[str, str]:
    """Look at the API for a conversation that `owner` is about to adopt; returns its metadata.

    Raises InvalidInput if there is none, ConversationTaken, RemoteReadFailed; RuntimeError inside a transaction.
    """
    check_text("conversation_id", conversation_id, MAX_CONVERSATION_ID)
    if ConversationSession.objects.using(alias()).filter(conversation_id=conversation_id).exists():
        raise ConversationTaken("another session stands for this conversation")
    # The host's factory chooses the client by the session, which is not recorded yet.
    session = ConversationSession(owner=owner, conversation_id=conversation_id)
    found = drivers.read(
        session, lambda not_after: RetrieveConversation(conversation_id=conversation_id, not_after=not_after)
    )
    if found.status in {400, 404}:
        raise InvalidInput("conversation_id", "the API has no such conversation", code="conversation_not_found")
    if found.kind is not OutcomeKind.APPLIED:
        raise read_failed(found)
    metadata = found.data.get("metadata")
    pairs = metadata.items() if isinstance(metadata, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}


def get_session(*, owner: Any = None, key: str) -> ConversationSession:
    """The session that `owner` has under `key`. Raises SessionNotFound, InvalidInput."""
    check_text("key", key, MAX_KEY)
    digest = ConversationSession.digest_of_key(owner and owner.pk, key)
    session = ConversationSession.objects.using(alias()).filter(key_digest=digest).first()
    if session is None:
        raise SessionNotFound("this owner has no session with this key")
    return session


def session_of(session_id: uuid.UUID) -> ConversationSession:
    """The session with this id. Raises SessionNotFound."""
    session = ConversationSession.objects.using(alias()).filter(pk=as_uuid(session_id, SessionNotFound)).first()
    if session is None:
        raise SessionNotFound(f"no session {session_id}")
    return session


def as_cleared(session: ConversationSession) -> ConversationSession | None:
    """The session as it is now, where a clear took its conversation away while that was read; else None."""
    # In this order: a clear that settles in between shows in the session.
    clears = WriteIntent.objects.using(alias()).queue(session.pk).filter(kind=WriteKind.CLEAR)
    is_going = clears.filter(target_id=session.conversation_id or "").exists()
    now = session_of(session.pk)
    if now.conversation_id != session.conversation_id:
        return now
    if not is_going:
        return None
    now.conversation_id = None  # deleted, and its worker is about to record that
    return now


def update_session(
    session_id: uuid.UUID,
    *,
    key: str | Unchanged | None = UNCHANGED,
    metadata: Mapping[str, str] | Unchanged | None = UNCHANGED,
    author: Any = None,
    idempotency_key: str | None = None,
    if_version: int | None = None,
) -> Recorded:
    """Change the key of a session at once, and record a change of its metadata, or neither.

    `metadata` replaces all pairs, in the conversation and, once that is done, in the session's row; a change that a
    later clear supersedes is for the next conversation. `if_version`: the version of the session that the caller has
    seen. Raises InvalidInput, SessionNotFound, SessionDeleted, SessionChanged, KeyTaken, IdempotencyConflict. Joins
    the caller's transaction.
    """
    if key is not UNCHANGED:
        check_text("key", key, MAX_KEY)
    write, is_new = None, True
    with transaction.atomic(using=alias()):
        if metadata is not UNCHANGED:
            write, is_new = _record_metadata(session_id, metadata, key, author, idempotency_key, if_version)
            if_version = None
        if key is not UNCHANGED and is_new:
            sessions.rename(session_id, key, if_version=if_version)
    return Recorded(session_of(session_id), write, is_new)


def _check(key: object, metadata: object, conversation_id: object) -> None:
    check_text("key", key, MAX_KEY)
    check_text("conversation_id", conversation_id, MAX_CONVERSATION_ID)
    check_metadata(metadata)


def _creation(owner: Any, idempotency_key: str | None, body: list[Any]) -> tuple[str, str]:
    if idempotency_key is None:
        return "", ""
    return ConversationSession.digest_of_key(owner and owner.pk, idempotency_key), codec.digest(codec.encode(body))


def _record_first(session: ConversationSession, intake: Intake, author: Any) -> None:
    recording.record_append(
        session.pk,
        intake,
        chunks(intake.items, max_items=conf.CHUNK_ITEMS, max_bytes=conf.CHUNK_BYTES),
        author=author,
    )


def _record_metadata(
    session_id: uuid.UUID,
    metadata: Mapping[str, str] | None,
    key: str | Unchanged | None,
    author: Any,
    idempotency_key: str | None,
    if_version: int | None,
) -> tuple[WriteIntent, bool]:
    check_metadata(metadata)
    check_text("idempotency_key", idempotency_key, MAX_KEY)
    metadata = metadata or {}
    return sessions.record_metadata(
        session_id,
        metadata,
        author=author,
        idempotency_key=idempotency_key,
        body_digest=_digest(metadata, *([] if key is UNCHANGED else [key])),
        if_version=if_version,
    )


def _digest(*body: Any) -> str:
    return codec.digest(codec.encode(["metadata", *body]))


acreate_session = asynchronous(create_session)
aget_session = asynchronous(get_session)
