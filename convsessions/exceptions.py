"""Every exception of the package. The tree::

    ConvsessionsError
    |-- InvalidInput(ValueError)
    |   |-- InvalidItem
    |   `-- InvalidSetting
    |-- NotFound(LookupError)
    |   |-- SessionNotFound
    |   `-- WriteNotFound
    |-- Conflict
    |   |-- IdempotencyConflict
    |   |-- KeyTaken
    |   |-- ConversationTaken
    |   |-- SessionDeleted
    |   |-- SessionChanged
    |   |-- EvidenceChanged
    |   `-- IllegalMove
    |-- WriteNotSettled
    |-- WriteRefused
    |-- LeaseLost
    |-- ContentUnreadable
    `-- RemoteReadFailed

Messages name fields, ids and states; they never quote an item's content or a key.
HTTP status codes for these are chosen in ``api/`` and nowhere else.
"""

from __future__ import annotations

from typing import Any


class ConvsessionsError(Exception):
    """Base of everything that convsessions raises on purpose."""


class InvalidInput(ConvsessionsError, ValueError):
    """A value given by the caller cannot be accepted; nothing was recorded."""

    def __init__(self, field: str, problem: str, *, code: str = "invalid") -> None:
        self.field, self.problem, self.code = field, problem, code
        super().__init__(f"{field}: {problem}")


class InvalidItem(InvalidInput):
    """An item of an append cannot be accepted; `field` is its path, as in ``items[3].content[0].text``."""


class InvalidSetting(InvalidInput):
    """A value in ``settings.CONVSESSIONS`` cannot be used."""


class NotFound(ConvsessionsError, LookupError):
    """No such row."""


class SessionNotFound(NotFound):
    """No session has this id."""


class WriteNotFound(NotFound):
    """No write has this id."""


class Conflict(ConvsessionsError):
    """The request contradicts what is already recorded."""


class IdempotencyConflict(Conflict):
    """This idempotency key was used in this session for a write with another body."""


class KeyTaken(Conflict):
    """The owner already has a session with this key."""


class ConversationTaken(Conflict):
    """Another session stands for this conversation."""


class SessionDeleted(Conflict):
    """The session was deleted: it takes no further writes."""


class SessionChanged(Conflict):
    """The session is no longer in the version that the caller has seen; nothing was recorded."""


class EvidenceChanged(Conflict):
    """The remote history, or the write, is no longer what the operator was shown; look again."""


class IllegalMove(Conflict):
    """The write or chunk is in a state that does not allow this."""


class WriteNotSettled(ConvsessionsError):
    """The write had not settled when the caller's patience ended; delivery goes on without the caller.

    `write` is the row as last read: its id, state, hold and evidence tell the rest.
    """

    def __init__(self, write: Any) -> None:
        self.write = write
        super().__init__(f"write {write.pk} is still {write.state}")


class WriteRefused(ConvsessionsError):
    """The API refused the write, or a person cancelled it; what was saved before (`write.items_saved`) stays.

    `write` is the row: its `state`, `error_code` and `error_param` tell why.
    """

    def __init__(self, write: Any) -> None:
        self.write = write
        why = write.error_code or write.cancel_cause
        at = f" at {write.error_param}" if write.error_param else ""
        super().__init__(f"write {write.pk} is {write.state}: {why}{at}")


class LeaseLost(ConvsessionsError):
    """Another worker took over this session; whatever this one learned must not be recorded."""


class ContentUnreadable(ConvsessionsError):
    """The present CIPHER cannot read what is stored in the journal, or cannot encrypt what is to be stored there."""


class RemoteReadFailed(ConvsessionsError):
    """The remote history could not be read.

    `status`: HTTP status or None; `code`: the API's or our own short code; `param`: the parameter that the API named,
    or empty; `retry_after`: seconds or None.
    """

    def __init__(
        self, code: str, *, status: int | None = None, param: str = "", retry_after: float | None = None
    ) -> None:
        self.code, self.status, self.param, self.retry_after = code, status, param, retry_after
        super().__init__(f"reading the conversation failed: {code}")
