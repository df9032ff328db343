"""Recording that a conversation is to go: the session's next append starts a new one, or the session goes, too."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from convsessions.conf import conf
from convsessions.delivery.threads import asynchronous
from convsessions.exceptions import InvalidInput
from convsessions.journal import recording, sessions
from convsessions.models import WriteIntent
from convsessions.values import MAX_KEY, check_text

Recorded = tuple[WriteIntent, bool]
"""The clear, and whether it is new, or was recorded earlier with the same key."""


def clear_session(
    session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None, erase: bool | None = None
) -> WriteIntent:
    """Record that the conversation is to be deleted; the next append starts a new one.

    It supersedes everything queued before it. `erase`: whether each item is deleted first, since the API keeps the
    items of a deleted conversation, and the journal's content of the session with them; `items_saved` of `items_total`
    tells how far it is. None: as ERASE_ITEMS_ON_CLEAR says. Raises SessionNotFound, IdempotencyConflict, InvalidInput.
    Joins the caller's transaction.
    """
    return record_clear(session_id, author=author, idempotency_key=idempotency_key, erase=erase)[0]


def delete_session(
    session_id: uuid.UUID, *, author: Any = None, idempotency_key: str | None = None, erase: bool | None = None
) -> WriteIntent:
    """Record that the conversation is to be deleted and that the session takes no more writes; returns the clear.

    Its rows stay, its key is free again. A deleted session can be deleted again: that returns the same write.
    `erase`: as in `clear_session`; a deletion that is not begun yet can still be made to erase by deleting again.
    Raises InvalidInput, SessionNotFound, IdempotencyConflict. Joins the caller's transaction.
    """
    return record_deletion(session_id, author=author, idempotency_key=idempotency_key, erase=erase)[0]


def record_clear(
    session_id: uuid.UUID,
    *,
    author: Any = None,
    idempotency_key: str | None = None,
    if_version: int | None = None,
    erase: bool | None = None,
) -> Recorded:
    """As `clear_session`; takes and returns what `record_append` does."""
    how = {"author": author, "idempotency_key": idempotency_key, "if_version": if_version}
    return _record(recording.record_clear, session_id, how, erase)


def record_deletion(
    session_id: uuid.UUID,
    *,
    author: Any = None,
    idempotency_key: str | None = None,
    if_version: int | None = None,
    erase: bool | None = None,
) -> Recorded:
    """As `delete_session`; takes and returns what `record_append` does."""
    how = {"author": author, "idempotency_key": idempotency_key, "if_version": if_version}
    return _record(sessions.delete_session, session_id, how, erase)


def _record(record: Callable[..., Recorded], session_id: uuid.UUID, how: dict[str, Any], erase: object) -> Recorded:
    check_text("idempotency_key", how["idempotency_key"], MAX_KEY)
    if erase is None:
        erase = conf.ERASE_ITEMS_ON_CLEAR
    if not isinstance(erase, bool):
        raise InvalidInput("erase", "give true or false", code="invalid_type")
    return record(session_id, erase=erase, **how)


aclear_session = asynchronous(clear_session)
