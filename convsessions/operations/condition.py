"""How delivery is doing, in figures: for the doctor and for metrics. Bounded reads of the journal; changes nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, Min, Q
from django.utils import timezone

from convsessions import enqueue
from convsessions.conf import conf
from convsessions.delivery import drivers
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, Heartbeat, WriteIntent
from convsessions.remote.calls import RetrieveConversation
from convsessions.remote.outcomes import Outcome
from convsessions.states import OPEN_STATES, HoldCode, WriteState

NO_CONVERSATION = "conv_0"
"""What is asked for where no session has a conversation: a key that works is told that there is none (404)."""

SWEEPS_MISSED = 3
"""After so many sweeps that did not come, the cluster that should run them counts as late."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Open writes of one kind: how many, and the age of the oldest in seconds (0.0 where there is none)."""

    count: int = 0
    oldest_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Condition:
    """`open` by state and `held` by hold code have every value, as metrics want it. Ages are in seconds.

    `sweep_seconds`: since the last sweep; `queue_depth`, `oldest_task_seconds`: None where that is not known.
    `overdue`: sessions whose work was due and which nobody took up; `dead_leases`: those that a worker had begun with
    and did not end.
    """

    open: Mapping[str, Kind]
    held: Mapping[str, Kind]
    sweep_seconds: float | None
    queue_depth: int | None
    oldest_task_seconds: float | None
    overdue: Kind
    dead_leases: Kind

    @property
    def sweep_is_late(self) -> bool:
        """Whether a cluster that once swept has stopped to."""
        return self.sweep_seconds is not None and self.sweep_seconds > sweep_patience()


def sweep_patience() -> float:
    """Seconds without a sweep after which something is wrong."""
    return SWEEPS_MISSED * 60.0 * conf.SWEEP_MINUTES


def condition() -> Condition:
    """How delivery is doing now. Raises what the database raises."""
    now = timezone.now()
    is_open = WriteIntent.objects.using(alias()).open().order_by()
    states = {**dict.fromkeys(map(str, OPEN_STATES), Kind()), **_kinds(is_open.values_list("state"), now)}
    held = is_open.exclude(hold_code=HoldCode.NONE).values_list("hold_code")
    codes = [str(code) for code in HoldCode if code is not HoldCode.NONE]
    beat = Heartbeat.objects.using(alias()).filter(pk=Heartbeat.SWEEP).values_list("beat_at", flat=True).first()
    return Condition(
        open=states,
        held={**dict.fromkeys(codes, Kind()), **_kinds(held, now)},
        sweep_seconds=_age(beat, now),
        queue_depth=enqueue.queue_depth(),
        oldest_task_seconds=enqueue.oldest_task_seconds(),
        overdue=_overdue(now),
        dead_leases=_dead_leases(now),
    )


def reach_api() -> Outcome:
    """One cheap read with the client of the last active session that has a conversation, or of a new one."""
    rows = ConversationSession.objects.using(alias()).exclude(conversation_id=None)
    session = rows.order_by("-updated_at").first() or ConversationSession(conversation_id=NO_CONVERSATION)
    conversation_id = session.conversation_id or NO_CONVERSATION
    return drivers.read(
        session, lambda not_after: RetrieveConversation(conversation_id=conversation_id, not_after=not_after)
    )


def _kinds(rows: object, now: dt.datetime) -> dict[str, Kind]:
    grouped = rows.annotate(count=Count("pk"), oldest=Min("created_at"))  # type: ignore[attr-defined]
    return {name: Kind(count, _age(oldest, now) or 0.0) for name, count, oldest in grouped}


def _overdue(now: dt.datetime) -> Kind:
    """The sweep postpones what it rang for by a minute or so; nothing is due for longer than two sweeps."""
    since = now - dt.timedelta(seconds=sweep_patience())
    rows = ConversationSession.objects.using(alias()).filter(wake_at__lte=since)
    return _sessions(rows, "wake_at", now)


def _dead_leases(now: dt.datetime) -> Kind:
    since = now - dt.timedelta(seconds=sweep_patience())
    ambiguous = WriteIntent.objects.using(alias()).open().filter(state=WriteState.AMBIGUOUS)
    rows = (
        ConversationSession.objects.using(alias())
        .filter(lease_expires_at__lte=since)
        .filter(Q(pk__in=WriteIntent.objects.using(alias()).open().values("session_id")))
        .exclude(pk__in=ambiguous.values("session_id"))
    )
    return _sessions(rows, "lease_expires_at", now)


def _sessions(rows: object, moment: str, now: dt.datetime) -> Kind:
    found = rows.order_by().aggregate(count=Count("pk"), oldest=Min(moment))  # type: ignore[attr-defined]
    return Kind(found["count"], _age(found["oldest"], now) or 0.0)


def _age(then: dt.datetime | None, now: dt.datetime) -> float | None:
    return None if then is None else round(max((now - then).total_seconds(), 0.0), 3)
