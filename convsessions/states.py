"""The closed vocabularies of the journal, and the legal moves between its states.

One state diagram serves writes and chunks::

    pending ---> sending ---> saved
     |  |  ^      |  |  |
     |  |  |      |  |  +---> ambiguous ---> saved | sending | cancelled
     |  |  +------+  |
     |  |  (proven   +-----+
     |  |  not applied)    v
     |  +--------------> refused ---> pending (an operator's retry)
     +-----------------> cancelled <--- sending

``pending -> saved`` is for writes that need no request: of a session without a conversation, all but an append.
"""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class WriteKind(TextChoices):
    APPEND = "append", _("append")
    POP = "pop", _("pop")
    CLEAR = "clear", _("clear")
    METADATA = "metadata", _("change of metadata")
    REMOVE = "remove", _("removal")


class WriteState(TextChoices):
    PENDING = "pending", _("pending")
    """Recorded; no request of it is in flight (a chunk: none was applied)."""

    SENDING = "sending", _("sending")
    """A write: it was begun. A chunk: a request is in flight, or its outcome is unknown."""

    SAVED = "saved", _("saved")
    """Every part of it is proven applied."""

    AMBIGUOUS = "ambiguous", _("ambiguous")
    """The evidence did not decide; the session waits for an operator."""

    REFUSED = "refused", _("refused")
    """The API said a definite no; nothing of that request was stored."""

    CANCELLED = "cancelled", _("cancelled")
    """Dropped by its author, an operator or a clear."""


OPEN_STATES = (WriteState.PENDING, WriteState.SENDING, WriteState.AMBIGUOUS)
"""A write in one of these stands before every later write of its session."""

ACTIVE_STATES = (WriteState.SENDING, WriteState.AMBIGUOUS)
"""Of a write in one of these the remote conversation may hold something; at most one a session."""

LEGAL_MOVES: dict[WriteState, frozenset[WriteState]] = {
    WriteState.PENDING: frozenset({WriteState.SENDING, WriteState.SAVED, WriteState.REFUSED, WriteState.CANCELLED}),
    WriteState.SENDING: frozenset(
        {WriteState.PENDING, WriteState.SAVED, WriteState.AMBIGUOUS, WriteState.REFUSED, WriteState.CANCELLED}
    ),
    WriteState.AMBIGUOUS: frozenset({WriteState.SENDING, WriteState.SAVED, WriteState.CANCELLED}),
    WriteState.REFUSED: frozenset({WriteState.PENDING}),
    WriteState.SAVED: frozenset(),
    WriteState.CANCELLED: frozenset(),
}


class HoldCode(TextChoices):
    """Why an open write waits until its `next_attempt_at`."""

    NONE = "", _("not held")
    UNREACHABLE = "unreachable", _("the API could not be reached")
    RATE_LIMITED = "rate_limited", _("rate limited")
    LOCKED = "locked", _("the conversation is busy")
    SETTLING = "settling", _("waiting until a late request can no longer land")
    UNREADABLE = "unreadable", _("the remote history could not be read")
    UNCONFIRMED = "unconfirmed", _("a deletion or a change of metadata is not confirmed yet")
    BAD_KEY = "bad_key", _("the API key was rejected")
    FORBIDDEN = "forbidden", _("the API key may not do this")
    QUOTA = "quota", _("the quota is used up")
    MISSING = "conversation_missing", _("the conversation was not found")
    CONTENT = "content_unreadable", _("its content in the journal cannot be decrypted")


HUMAN_HOLDS = (HoldCode.BAD_KEY, HoldCode.FORBIDDEN, HoldCode.QUOTA, HoldCode.MISSING, HoldCode.CONTENT)
"""Holds that end only when a person mends something; they are listed as needing attention."""


class Operation(TextChoices):
    """The requests that delivery makes."""

    CREATE_CONVERSATION = "create_conversation", _("create conversation")
    APPEND_ITEMS = "append_items", _("append items")
    LIST_ITEMS = "list_items", _("list items")
    DELETE_ITEM = "delete_item", _("delete item")
    DELETE_CONVERSATION = "delete_conversation", _("delete conversation")
    RETRIEVE_CONVERSATION = "retrieve_conversation", _("retrieve conversation")
    UPDATE_CONVERSATION = "update_conversation", _("update conversation")


class OutcomeKind(TextChoices):
    """What is known of a request after it ended: exactly three answers."""

    APPLIED = "applied", _("applied")
    NOT_APPLIED = "not_applied", _("not applied")
    UNKNOWN = "unknown", _("unknown")


class Verdict(TextChoices):
    """What a reconciliation concluded from the remote history."""

    SAVED = "saved", _("saved: found exactly once")
    ABSENT = "absent", _("absent: not stored")
    PARTIAL = "partial", _("partial: only a part of it, or in altered form")
    DUPLICATED = "duplicated", _("duplicated: stored more than once")
    CONTESTED = "contested", _("contested: another write could explain it too")
    UNDECIDED = "undecided", _("undecided: the history could not be read")


class Resolution(TextChoices):
    """What an operator may do with an ambiguous write; the last one: with a settled one that left half pairs."""

    ACCEPT = "accept", _("accept: it is saved")
    RESEND = "resend", _("resend: it is not saved")
    REMOVE_DUPLICATES = "remove_duplicates", _("remove the extra copies")
    ROLLBACK = "rollback", _("roll back: delete what is there, then cancel")
    ABANDON = "abandon", _("abandon: leave the remote as it is, cancel the rest")
    RECHECK = "recheck", _("check again")
    REMOVE_HALVES = "remove_halves", _("remove what is left of broken pairs")


class RefusalPolicy(TextChoices):
    """What becomes of an append of which the API refuses an item."""

    STOP = "stop", _("stop: send nothing after it")
    SKIP = "skip", _("skip: send the rest without it")


class CancelCause(TextChoices):
    """Who dropped a write."""

    NONE = "", _("not cancelled")
    AUTHOR = "author", _("its author")
    OPERATOR = "operator", _("an operator")
    CLEAR = "clear", _("a later clear")
