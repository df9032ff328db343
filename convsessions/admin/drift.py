"""The page on which a session's journal is compared with its remote history. It reads, and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from convsessions import operations
from convsessions.delivery.verification import Drift
from convsessions.exceptions import ContentUnreadable, RemoteReadFailed
from convsessions.models import ConversationSession, WriteIntent

from .display import CONTENT_UNREADABLE
from .owners import Owner, owners_of

if TYPE_CHECKING:
    from .sessions import SessionAdmin

SECONDS = 20.0
"""A person is waiting: for the whole read."""
MOST_SHOWN = 200
"""Ids of each kind."""

KINDS = {
    "missing": (_("Missing"), _("recorded as saved, and not in the remote history")),
    "altered": (_("Altered"), _("there, with other content than was sent")),
    "reordered": (_("Out of order"), _("there, but not in the order in which they were saved")),
    "foreign": (_("Foreign"), _("in the remote history, and no saved write accounts for them; that need not be wrong")),
}


@dataclass(frozen=True, slots=True)
class Group:
    """The ids of one kind of difference, each with what it belongs to (None: nothing of ours)."""

    name: str
    title: Any
    explanation: Any
    number: int
    ids: Sequence[tuple[str, Owner | None]]


def show(model_admin: SessionAdmin, request: HttpRequest, session: ConversationSession) -> HttpResponse:
    """Reads the remote for every view of the page, outside any transaction."""
    drift: Drift | None = None
    problem: Any = ""
    try:
        drift = operations.verify_session(session.pk, seconds=SECONDS)
    except RemoteReadFailed as error:
        problem = gettext("The remote history could not be read just now: %(code)s.") % {"code": error.code}
    except ContentUnreadable:
        problem = CONTENT_UNREADABLE
    may_see = request.user.has_perm("convsessions.view_writeintent")
    return model_admin.page(
        request,
        "conversationsession/drift.html",
        title=gettext("Journal and remote"),
        original=session,
        session=session,
        drift=drift,
        problem=problem,
        groups=_groups(session, drift) if drift is not None else [],
        links=may_see and bool(model_admin.address("changelist", model=WriteIntent)),
        read_at=timezone.now(),
    )


def _groups(session: ConversationSession, drift: Any) -> list[Group]:
    owners = owners_of(session)
    groups = []
    for name, (title, explanation) in KINDS.items():
        ids: list[str] = getattr(drift, name)
        shown = [(one, owners.get(one)) for one in ids[:MOST_SHOWN]]
        if ids:
            groups.append(Group(name, title, explanation, len(ids), shown))
    return groups
