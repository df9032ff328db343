"""Who may see and do what: the one class that a host replaces to have other rules."""

from __future__ import annotations

import enum
from typing import Any

from django.db.models import QuerySet
from rest_framework.exceptions import NotAuthenticated

from convsessions.models import ConversationSession


class Act(enum.Enum):
    """What somebody does to a session that they see; the value is the permission for it, in the app `convsessions`."""

    READ_ITEMS = "view_payload"
    WRITE = "change_conversationsession"
    CANCEL = "cancel_writeintent"
    RECONCILE = "reconcile_writeintent"
    RESOLVE = "resolve_writeintent"


OPERATORS_ONLY = frozenset({Act.RECONCILE, Act.RESOLVE})
"""Acts that the owner of a session may not do as such: they need a member of staff with the permission."""


class SessionAccess:
    """The rule (setting ACCESS_CLASS): owners see and write to their own sessions, model permissions open others.

    Whoever may view or change sessions sees them all; what a person does not see answers 404, what they see and may
    not do 403. `user` is whatever the host's authentication says; one without `has_perm` has no permission.
    """

    def __init__(self, user: Any) -> None:
        self.user = user

    @property
    def is_staff(self) -> bool:
        return bool(getattr(self.user, "is_staff", False))

    @property
    def author(self) -> Any:
        """Who the journal says did it: the user, or None where the host lets in people whom it does not know."""
        return self.user if self._is_known() else None

    def owner(self) -> Any:
        """The owner of a session that the user creates. Raises NotAuthenticated: nobody's sessions would be lost."""
        if not self._is_known():
            raise NotAuthenticated
        return self.user

    def may_adopt(self, conversation_id: str) -> bool:
        """Whether the user may make a session of their own of a conversation that the API has, and nobody else here.

        Its id is known to nobody but those whom the site or the API has told it.
        """
        return self._is_known()

    def visible(self, sessions: QuerySet[Any]) -> QuerySet[Any]:
        """Those of `sessions` that the user may see."""
        if self._has("view_conversationsession") or self._has("change_conversationsession"):
            return sessions
        return sessions.filter(owner_id=self.user.pk) if self._is_known() else sessions.none()

    def allows(self, act: Act, session: ConversationSession) -> bool:
        """Whether the user may do `act` to a session that is visible to them."""
        if act in OPERATORS_ONLY:
            return self.is_staff and self._has(act.value)
        return self._owns(session) or self._has(act.value)

    def _owns(self, session: ConversationSession) -> bool:
        return self._is_known() and session.owner_id == self.user.pk

    def _is_known(self) -> bool:
        return bool(getattr(self.user, "is_authenticated", False)) and getattr(self.user, "pk", None) is not None

    def _has(self, permission: str) -> bool:
        has_perm = getattr(self.user, "has_perm", None)
        return bool(has_perm and has_perm(f"convsessions.{permission}"))
