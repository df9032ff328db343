"""How delivery is doing, in figures: for the doctor and for metrics. Bounded reads of the journal; changes nothing."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from convsessions import enqueue
from convsessions.conf import conf
from convsessions.delivery import drivers
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, Heartbeat, RequestAttempt, WriteIntent
from convsessions.remote.calls import RetrieveConversation
from convsessions.remote.outcomes import Outcome
from convsessions.states import OPEN_STATES, HoldCode, WriteState

NO_CONVERSATION = "conv_0"
"""What is asked for where no session has a conversation: a key that works is told that there is none (404)."""

SWEEPS_MISSED = 3
"""After so many sweeps that did not come, the cluster that should run them counts as late."""


class Cluster(enum.StrEnum):
    """What the signs of life say of those who should sweep and deliver."""

    ALIVE = "alive"
    """The sweep comes, and work that waits is taken up."""
    LATE = "late"
    """The sweep has stopped to come, and no worker gave a sign since: nothing is alive, or nothing was to be done."""
    SWEEP_MISSING = "sweep_missing"
    """Workers deliver, but the sweep has stopped to come: its schedule is missing, or nobody runs it."""
    NOT_DELIVERING = "not_delivering"
    """The sweep comes, and work waits, but nobody delivers: the doorbells do not reach a worker."""
    UNKNOWN = "unknown"
    """The sweep never came: a new set-up, or one that does without."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """`swept_at`, `delivered_at`: the last sign of the sweep, and of a worker (15 seconds apart at least)."""

    cluster: Cluster
    swept_at: dt.datetime | None
    delivered_at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Kind:
    """Open writes of one kind: how many, and the age of the oldest in seconds (0.0 where there is none)."""

    count: int = 0
    oldest_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Condition:
    """`open` by state and `held` by hold code have every value, as metrics want it. Ages are in seconds.

    `sweep_seconds`, `delivery_seconds`: since the last sweep, and the last sign of a worker; `queue_depth`,
    `oldest_task_seconds`: None where that is not known.
    `overdue`: sessions whose work was due and which nobody took up; `dead_leases`: those that a worker had begun with
    and did not end.
    """

    open: Mapping[str, Kind]
    held: Mapping[str, Kind]
    cluster: Cluster
    sweep_seconds: float | None
    delivery_seconds: float | None
    queue_depth: int | None
    oldest_task_seconds: float | None
    overdue: Kind
    dead_leases: Kind


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
    beats = pulse(now)
    return Condition(
        open=states,
        held={**dict.fromkeys(codes, Kind()), **_kinds(held, now)},
        cluster=beats.cluster,
        sweep_seconds=age(beats.swept_at, now),
        delivery_seconds=age(beats.delivered_at, now),
        queue_depth=enqueue.queue_depth(),
        oldest_task_seconds=enqueue.oldest_task_seconds(),
        overdue=_overdue(now),
        dead_leases=_dead_leases(now),
    )


def pulse(now: dt.datetime) -> Pulse:
    """What the signs of life say: one row each, and a look at what waits where nobody gave a sign."""
    beats = dict(Heartbeat.objects.using(alias()).values_list("pk", "beat_at"))
    swept_at, delivered_at = beats.get(Heartbeat.SWEEP), beats.get(Heartbeat.DELIVERY)
    since = now - dt.timedelta(seconds=sweep_patience())
    delivers = delivered_at is not None and delivered_at >= since
    if swept_at is None:
        cluster = Cluster.UNKNOWN
    elif swept_at < since:
        cluster = Cluster.SWEEP_MISSING if delivers else Cluster.LATE
    else:
        cluster = Cluster.ALIVE if delivers or not stuck(since).exists() else Cluster.NOT_DELIVERING
    return Pulse(cluster, swept_at, delivered_at)


def stuck(since: dt.datetime) -> QuerySet[WriteIntent]:
    """Writes that could have been delivered ever since, while nothing of their session was sent or settled.

    Only the head of a session is due: what waits behind a long, held or ambiguous write is not stuck itself.
    """
    of_session = WriteIntent.objects.filter(session_id=OuterRef("session_id"))
    return (
        WriteIntent.objects.using(alias())
        .open()
        .filter(Q(next_attempt_at=None) | Q(next_attempt_at__lt=since), created_at__lt=since)
        .exclude(state=WriteState.AMBIGUOUS)
        .exclude(Exists(of_session.open().filter(sequence__lt=OuterRef("sequence"))))
        .exclude(Exists(of_session.filter(settled_at__gte=since)))
        .exclude(Exists(RequestAttempt.objects.filter(write=OuterRef("pk"), sent_at__gte=since)))
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
    return {name: Kind(count, age(oldest, now) or 0.0) for name, count, oldest in grouped}


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
    return Kind(found["count"], age(found["oldest"], now) or 0.0)


def age(then: dt.datetime | None, now: dt.datetime) -> float | None:
    """Seconds since `then`; None where that never was."""
    return None if then is None else round(max((now - then).total_seconds(), 0.0), 3)
