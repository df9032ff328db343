"""The row of a session, however the caller names it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from convsessions import operations
from convsessions.exceptions import ConversationTaken, InvalidInput, KeyTaken, SessionNotFound
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession


@dataclass(frozen=True, slots=True)
class Name:
    """Exactly one of `key`, `session_id` and `conversation_id` is given."""

    owner: Any = None
    key: str | None = None
    session_id: uuid.UUID | None = None
    conversation_id: str | None = None

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.key, self.session_id, self.conversation_id)) != 1:
            raise InvalidInput("session", "give exactly one of key, session and conversation_id")

    def find(self) -> ConversationSession | None:
        """The row, if there is one. Raises ConversationTaken where it is somebody else's."""
        rows = ConversationSession.objects.using(alias())
        if self.session_id is not None:
            return rows.filter(pk=self.session_id).first()
        if self.key is not None:
            return rows.filter(key_digest=ConversationSession.digest_of_key(self._owner_pk, self.key)).first()
        found = rows.filter(conversation_id=self.conversation_id).first()
        if found is not None and self.owner is not None and found.owner_id != self._owner_pk:
            raise ConversationTaken("another owner's session stands for this conversation")
        return found

    def open(self) -> ConversationSession:
        """The row, which is recorded where there is none yet: once, however many processes do so at a time.

        Raises SessionNotFound where the id of a session is given, ConversationTaken.
        """
        found = self.find()
        if found is not None:
            return found
        if self.session_id is not None:
            raise SessionNotFound(f"no session {self.session_id}")
        try:
            return operations.create_session(owner=self.owner, key=self.key, conversation_id=self.conversation_id)
        except (KeyTaken, ConversationTaken):
            found = self.find()
            if found is None:
                raise
            return found

    @property
    def _owner_pk(self) -> Any:
        return None if self.owner is None else self.owner.pk


def row_id(session: ConversationSession | uuid.UUID | str | None) -> uuid.UUID | None:
    """The id that a caller gave as such, as text or as a row. Raises InvalidInput."""
    if session is None or isinstance(session, uuid.UUID):
        return session
    if isinstance(session, ConversationSession):
        return session.pk
    try:
        return uuid.UUID(session)
    except (ValueError, AttributeError, TypeError):
        raise InvalidInput("session", "give a session or its id") from None
