"""The figures of the overview. Every query reads from an index and no more than so many rows, however big the journal.

Times are UTC datetimes as Django gives them; durations are seconds.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Model
from django.db.models.functions import TruncHour
from django.utils import timezone

from convsessions.models import ConversationSession, Reconciliation, RequestAttempt, WriteIntent
from convsessions.operations.condition import Cluster, pulse
from convsessions.states import OutcomeKind, WriteState

WINDOW = dt.timedelta(hours=24)
MOST_WRITES = 100_000
"""The newest writes of the window that are counted."""
MOST_TIMED = 5_000
"""The newest saved writes whose times are looked at."""
MOST_ROWS = 100_000
"""The newest requests, and reconciliations, that are looked through for those of the window."""

Counts = dict[dt.datetime, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Hours:
    """Writes by the hour in which they were recorded and by their state now; `since`: all later ones are counted."""

    counts: Counts
    since: dt.datetime
    capped: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """Requests of unknown outcome, what evidence said of writes by verdict, and what operators did by resolution."""

    requests: int
    verdicts: dict[str, int] = field(default_factory=dict)
    resolutions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workers:
    """`swept_at`, `delivered_at`: the last signs of the sweep and of a worker (None: never); `live`: sessions being
    delivered; `due`: sessions with work that nobody is doing; `reported`: workers that the queue reports, None if it
    does not.
    """

    cluster: Cluster
    swept_at: dt.datetime | None
    delivered_at: dt.datetime | None
    live: int
    due: int
    reported: int | None


def hours(now: dt.datetime) -> Hours:
    """Two queries: where the newest MOST_WRITES begin, and the counts from there on."""
    since = (now - WINDOW).replace(minute=0, second=0, microsecond=0) + dt.timedelta(hours=1)
    newest = WriteIntent.objects.filter(created_at__gte=since).order_by("-created_at")
    first = newest.values_list("created_at", flat=True)[MOST_WRITES : MOST_WRITES + 1].first()
    writes = WriteIntent.objects.filter(created_at__gte=first or since).order_by()
    rows = writes.annotate(hour=TruncHour("created_at", tzinfo=dt.UTC)).values_list("hour", "state")
    counts: Counts = {since + dt.timedelta(hours=number): {} for number in range(24)}
    for hour, state, number in rows.annotate(number=Count("pk")):
        counts.setdefault(hour, {})[state] = number
    return Hours(counts, first or since, capped=first is not None)


def attention() -> dict[tuple[str, str, str], int]:
    """What waits for a person, counted by state, hold and verdict."""
    rows = WriteIntent.objects.needing_attention().order_by().values_list("state", "hold_code", "error_code")
    return {(state, hold, verdict): number for state, hold, verdict, number in rows.annotate(number=Count("pk"))}


def oldest_waiting() -> WriteIntent | None:
    """The write that waits for workers longest; not one that waits for a person."""
    waiting = WriteIntent.objects.open().filter(needs_attention__isnull=True)
    return waiting.defer("popped", "doomed_ids", "half_pairs").order_by("created_at").first()


def saving_times(now: dt.datetime) -> list[float]:
    """Seconds from recorded to saved of the newest saved writes of the window, ascending."""
    saved = WriteIntent.objects.filter(created_at__gte=now - WINDOW, state=WriteState.SAVED).order_by("-created_at")
    times = saved.values_list("created_at", "settled_at")[:MOST_TIMED]
    return sorted(max((end - start).total_seconds(), 0.0) for start, end in times if end is not None)


def percentile(ascending: Sequence[float], share: float) -> float | None:
    """The smallest of `ascending` that is not below `share` (0 to 1) of them; None of none."""
    return ascending[max(math.ceil(share * len(ascending)) - 1, 0)] if ascending else None


def unknown(now: dt.datetime) -> Unknown:
    """Looks through the newest rows by primary key, since neither table has an index on time."""
    requests = _newest(RequestAttempt).filter(sent_at__gte=now - WINDOW, outcome=OutcomeKind.UNKNOWN)
    looks = _newest(Reconciliation).filter(created_at__gte=now - WINDOW).order_by()
    by_evidence = looks.filter(resolution="").exclude(verdict="").values_list("verdict")
    by_operators = looks.exclude(resolution="").values_list("resolution")
    return Unknown(
        requests.count(),
        dict(by_evidence.annotate(number=Count("pk"))),
        dict(by_operators.annotate(number=Count("pk"))),
    )


def workers(now: dt.datetime, *, reported: int | None) -> Workers:
    """Three queries, all from the index on `wake_at` but for two rows; one more where no worker gave a sign."""
    beats = pulse(now)
    # A session with a live lease is looked at again when that ends: its `wake_at` lies ahead, too.
    live = ConversationSession.objects.filter(wake_at__gt=now, lease_expires_at__gt=now).count()
    due = ConversationSession.objects.due(now).count()
    return Workers(beats.cluster, beats.swept_at, beats.delivered_at, live, due, reported)


def _newest(model: type[Model]) -> Any:
    """The newest MOST_ROWS rows of a table with ascending primary keys."""
    rows: Any = model._default_manager  # noqa: SLF001 - documented
    last = rows.order_by("-pk").values_list("pk", flat=True).first() or 0
    return rows.filter(pk__gt=last - MOST_ROWS)


def present() -> dt.datetime:
    """Now, as the columns have it."""
    return timezone.now()
