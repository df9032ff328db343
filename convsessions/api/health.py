"""Whether writes get done: for load balancers and monitoring, without credentials and without secrets."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.models import Count, Min, Q
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from convsessions.enqueue import queue_depth
from convsessions.models import WriteIntent
from convsessions.operations.condition import age, pulse, stuck
from convsessions.states import WriteState

from . import rows
from .endpoint import Endpoint

PATIENCE = dt.timedelta(minutes=10)
"""How long a write may be due without anything happening to its session."""


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
    return {**counts, "oldest_pending_seconds": age(oldest, now)}


def _cluster(now: dt.datetime) -> dict[str, Any]:
    beats = pulse(now)
    return {
        "cluster": beats.cluster.value,
        "last_sweep_at": beats.swept_at,
        "last_sweep_seconds": age(beats.swept_at, now),
        "last_delivery_at": beats.delivered_at,
        "last_delivery_seconds": age(beats.delivered_at, now),
    }
