"""What happened to a write, in the order of time: recorded, requests, reconciliations, acts of operators, settled."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from convsessions.models import Reconciliation, RequestAttempt, WriteIntent

from .display import badge, span
from .evidence import Fact, facts_of

NEWEST = 40
"""Requests, and reconciliations, that are shown: a write of 10,000 items has 500."""

OUTCOMES = {"applied": "saved", "not_applied": "refused", "unknown": "ambiguous"}


@dataclass(frozen=True, slots=True)
class Event:
    """`codes`: (what it is, its value) of what is copied into a search or a ticket; `facts`: evidence."""

    at: dt.datetime
    title: str
    badge: SafeString | str = ""
    codes: Sequence[tuple[str, Any]] = ()
    facts: Sequence[Fact] = ()
    reason: str = ""
    deadline_at: dt.datetime | None = None
    finished_at: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """`events` in order; `cut`: older ones are left out."""

    events: list[Event] = field(default_factory=list)
    cut: bool = False


def events_of(write: WriteIntent) -> Timeline:
    """The newest events of a write: two queries, whatever its size."""
    requests = list(
        write.requests.order_by("-pk")
        .select_related("chunk")
        .defer("chunk__payload", "chunk__original", "chunk__remote_ids")[:NEWEST]
    )
    looks = list(
        write.reconciliations.order_by("-pk")
        .select_related("chunk")
        .prefetch_related("actor")
        .defer("chunk__payload", "chunk__original", "chunk__remote_ids")[:NEWEST]
    )
    events = [*map(_request, requests), *map(_look, looks)]
    if write.settled_at:
        events.append(Event(write.settled_at, _("Settled"), badge(write.state, write.get_state_display())))
    events.append(Event(write.created_at, _("Recorded"), codes=_author(write)))
    return Timeline(sorted(events, key=lambda event: event.at), cut=NEWEST in (len(requests), len(looks)))


ACTS = {
    "retry": gettext_lazy("try again"),
    "cancel": gettext_lazy("cancel"),
    "restored": gettext_lazy("put in doubt"),
}
"""What operators do besides resolving, by its name in the evidence."""


def _author(write: WriteIntent) -> list[tuple[str, Any]]:
    return [(_("by"), write.author)] if write.author else []


def _request(request: RequestAttempt) -> Event:
    what = request.get_operation_display().capitalize()
    if request.chunk is not None:
        what = f"{what}: {span(request.chunk.first_item, request.chunk.item_count)}"
    outcome = badge(
        OUTCOMES.get(request.outcome or "", "sending"), request.get_outcome_display() or _("no outcome yet")
    )
    codes = [
        (_("code"), request.code),
        (_("parameter"), request.param),
        (_("HTTP status"), request.status),
        (_("target"), request.target_id),
        (_("request id"), request.request_id),
    ]
    given = [(name, value) for name, value in codes if value]
    return Event(request.sent_at, what, outcome, given, (), "", request.deadline_at, request.finished_at)


def _look(look: Reconciliation) -> Event:
    title = _("Compared with the remote history")
    if look.resolution:
        title = _("Operator: %(resolution)s") % {"resolution": look.get_resolution_display()}
    elif act := ACTS.get(look.evidence.get("act", "")):
        title = _("Operator: %(resolution)s") % {"resolution": act}
    if look.chunk is not None:
        title = f"{title}: {span(look.chunk.first_item, look.chunk.item_count)}"
    by = [(_("by"), look.actor)] if look.actor else []
    verdict = badge(VERDICTS.get(look.verdict, "none"), look.get_verdict_display()) if look.verdict else ""
    return Event(look.created_at, title, verdict, by, facts_of(look.evidence), look.reason)


VERDICTS = {
    "saved": "saved",
    "absent": "pending",
    "partial": "ambiguous",
    "duplicated": "ambiguous",
    "contested": "ambiguous",
    "undecided": "refused",
}
"""The colours that verdicts borrow from states."""
