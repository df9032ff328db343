"""Choosing what a worker that serves many sessions takes next. Opens its own transaction."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable

from django.db import connections, transaction
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from convsessions.models import ConversationSession

from .leases import lease_duration

CANDIDATES = 8
"""Sessions from which each one that is taken is chosen."""
LONGEST_WAITING, JUST_DUE = 2000, 1000
"""Due sessions that are looked at, from either end."""

Candidate = tuple[uuid.UUID, object]
"""A session and its owner."""


class Turns:
    """How many turns the sessions of each owner had. Who comes later is not behind, nor ahead, of those before.

    One that a neighbour turns out to have taken counts, too: its owner had that turn there.
    """

    def __init__(self) -> None:
        self._had: dict[object, int] = {}
        self._present = 0

    def choose(self, count: int, candidates: Iterable[Candidate]) -> list[uuid.UUID]:
        """`count` of `candidates`, which come in the order of their wait: the owner who had the fewest turns first."""
        waiting: dict[object, list[uuid.UUID]] = {}
        for session_id, owner in candidates:
            waiting.setdefault(owner, []).append(session_id)
        chosen: list[uuid.UUID] = []
        while waiting and len(chosen) < count:
            owner = min(waiting, key=self._of)  # of equals the one that waits longest
            self._present = self._of(owner)
            self._had[owner] = self._present + 1
            chosen.append(waiting[owner].pop(0))
            if not waiting[owner]:
                del waiting[owner]
        return chosen

    def _of(self, owner: object) -> int:
        return max(self._had.get(owner, 0), self._present)


def reserve(count: int, turns: Turns, *, using: str) -> list[uuid.UUID]:
    """Up to `count` sessions with work that nobody is doing, for the caller to claim at once.

    Owners take turns, and each one's longest waiting session comes first. Others overlook what was reserved for as
    long as a lease lasts; if the caller dies before it claims a session, the sweep finds that after this time.
    """
    reserved: list[uuid.UUID] = []
    tried: set[uuid.UUID] = set()
    while True:
        missing, now = count - len(reserved), timezone.now()
        chosen = turns.choose(missing, _candidates(missing * CANDIDATES, now, tried, using))
        taken = _take(chosen, now, using)
        reserved += taken
        if len(taken) == len(chosen):
            return reserved
        # Neighbours who looked at the same moment took the rest of these. There may be more than they took.
        tried.update(chosen)


def _take(chosen: list[uuid.UUID], now: dt.datetime, using: str) -> list[uuid.UUID]:
    """Reserve those of `chosen` that nobody has locked, and nobody else has reserved meanwhile."""
    if not chosen:
        return []
    # Nobody is waited for, so that many rows may be locked here: whoever has one locked is at work on it.
    features = connections[using].features
    rows = ConversationSession.objects.using(using).select_for_update(
        skip_locked=features.has_select_for_update_skip_locked, no_key=features.has_select_for_no_key_update
    )
    with transaction.atomic(using=using):
        # By the primary key alone, as every turn does it; see `recording.postpone_wake`.
        locked = dict(rows.filter(pk__in=chosen).values_list("pk", "wake_at"))
        due = [pk for pk in chosen if (wake_at := locked.get(pk)) is not None and wake_at <= now]
        ConversationSession.objects.using(using).filter(pk__in=due).update(wake_at=now + lease_duration())
    return due


def _candidates(count: int, now: dt.datetime, tried: set[uuid.UUID], using: str) -> list[Candidate]:
    """Due sessions with their owners: first the longest waiting one of each owner, then each one's next.

    Of a backlog only its two ends are looked at, for every look would sort all of it: those that wait longest, and
    those that have just become due, among whom an owner stands who comes behind another one's backlog.
    """
    due = ConversationSession.objects.using(using).due(now).exclude(pk__in=tried)
    end = _wake_at_of(due, LONGEST_WAITING)
    if end is None:
        return _of_each_owner(due, count)
    behind = due.filter(wake_at__gt=end)
    begin = _wake_at_of(behind.reverse(), JUST_DUE)
    just_due = behind if begin is None else behind.filter(wake_at__gt=begin)
    return _of_each_owner(due.filter(wake_at__lte=end), count) + _of_each_owner(just_due, count)


def _wake_at_of(sessions: QuerySet[ConversationSession], place: int) -> dt.datetime | None:
    """`wake_at` of the one that has `place` (from 0) others before it; None of fewer."""
    return sessions.values_list("wake_at", flat=True)[place : place + 1].first()


def _of_each_owner(sessions: QuerySet[ConversationSession], count: int) -> list[Candidate]:
    place = Window(RowNumber(), partition_by=F("owner_id"), order_by=F("wake_at").asc())
    in_turn = sessions.annotate(place=place).order_by("place", "wake_at")
    return list(in_turn.values_list("pk", "owner_id")[:count])
