"""Whether writes get done: for load balancers and monitoring, without credentials and without secrets."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from convsessions.conf import conf
from convsessions.enqueue import queue_depth
from convsessions.models import Heartbeat, RequestAttempt, WriteIntent
from convsessions.states import WriteState

from . import rows
from .endpoint import Endpoint

PATIENCE = dt.timedelta(minutes=10)
"""How long a write may be due without anything happening to its session."""

SWEEPS_MISSED = 3
"""After so many sweeps that did not come, the cluster that should run them counts as late."""


class Health(Endpoint):
    url_name = "health"
    throttle_classes = ()

    def get_authenticators(self) -> list[BaseAuthentication]:
        return []

    def get_permissions(self) -> list[BasePermission]:
        return []

    def get(self, request: Request, **host: Any) -> Response:
        """Whether writes get done; 503 when the database does not answer or a write has been due for ten minutes."""
        now = timezone.now()
        try:
            counts, is_stuck = {**_counts(now), **_cluster(now)}, stuck(now - PATIENCE).exists()
        except (DatabaseError, InterfaceError):
            return Response({"status": "failing", "database": "unreachable"}, status=503)
        body = {"status": "failing" if is_stuck else "ok", "database": "ok", "queue_depth": queue_depth(), **counts}
        return Response(body, status=503 if is_stuck else 200)


def _counts(now: dt.datetime) -> dict[str, Any]:
    deliverable = Q(state__in=(WriteState.PENDING, WriteState.SENDING))
    counts = (
        WriteIntent.objects.using(rows.alias())
        .open()
        .aggregate(
            open_writes=Count("pk"),
            held_writes=Count("pk", filter=~Q(hold_code="")),
            ambiguous_writes=Count("pk", filter=Q(state=WriteState.AMBIGUOUS)),
            oldest=Min("created_at", filter=deliverable),
        )
    )
    oldest = counts.pop("oldest")
    return {**counts, "oldest_pending_seconds": None if oldest is None else _age(now, oldest)}


def _cluster(now: dt.datetime) -> dict[str, Any]:
    """When the sweep last ran: the scheduler, the queue and a worker of the cluster all had to be alive for it."""
    beat = Heartbeat.objects.using(rows.alias()).filter(pk=Heartbeat.SWEEP).first()
    if beat is None:
        return {"cluster": "unknown", "last_sweep_at": None, "last_sweep_seconds": None}
    age = _age(now, beat.beat_at)
    is_late = age > SWEEPS_MISSED * 60 * conf.SWEEP_MINUTES
    return {"cluster": "late" if is_late else "alive", "last_sweep_at": beat.beat_at, "last_sweep_seconds": age}


def _age(now: dt.datetime, then: dt.datetime) -> float:
    return round(max((now - then).total_seconds(), 0.0), 3)


def stuck(since: dt.datetime) -> QuerySet[WriteIntent]:
    """Writes that could have been delivered ever since, while nothing of their session was sent or settled.

    Only the head of a session is due: what waits behind a long, held or ambiguous write is not stuck itself.
    """
    of_session = WriteIntent.objects.filter(session_id=OuterRef("session_id"))
    return (
        WriteIntent.objects.using(rows.alias())
        .open()
        .filter(Q(next_attempt_at=None) | Q(next_attempt_at__lt=since), created_at__lt=since)
        .exclude(state=WriteState.AMBIGUOUS)
        .exclude(Exists(of_session.open().filter(sequence__lt=OuterRef("sequence"))))
        .exclude(Exists(of_session.filter(settled_at__gte=since)))
        .exclude(Exists(RequestAttempt.objects.filter(write=OuterRef("pk"), sent_at__gte=since)))
    )
