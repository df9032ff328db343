"""Metrics in Prometheus' text format: gauges, read from the journal when they are asked for. Needs the extra `metrics`.

A host mounts it where it likes: ``path("metrics/", Metrics.as_view())``. Nothing in it comes from items or keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.http import HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from convsessions.operations.condition import Condition, Kind, condition

from .endpoint import Endpoint

PERMISSION = "convsessions.view_writeintent"


class MayViewWrites(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        return bool(request.user and request.user.has_perm(PERMISSION))


class _AnyFormat(BaseContentNegotiation):
    """Whatever a scraper says that it accepts, it gets the one format that there is."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class Metrics(Endpoint):
    """For those who have the permission to view writes, by the API's own means to log in."""

    url_name = "metrics"
    content_negotiation_class = _AnyFormat
    throttle_classes = ()
    schema = None

    def get_permissions(self) -> list[BasePermission]:
        return [MayViewWrites()]

    def get(self, request: Request, **host: Any) -> HttpResponse:
        registry = CollectorRegistry()
        registry.register(_Gauges(condition()))
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Gauges(Collector):
    def __init__(self, now: Condition) -> None:
        self._now = now

    def collect(self) -> Iterator[GaugeMetricFamily]:
        now = self._now
        yield from _by("convsessions_open_writes", "Open writes", "state", now.open)
        yield from _by("convsessions_held_writes", "Open writes that are held", "code", now.held)
        yield from _kind("convsessions_overdue_sessions", "Sessions with work that nobody does", now.overdue)
        yield from _kind("convsessions_dead_leases", "Sessions whose worker died", now.dead_leases)
        for name, text, value in (
            ("convsessions_last_sweep_age_seconds", "Seconds since the last sweep", now.sweep_seconds),
            ("convsessions_last_delivery_age_seconds", "Seconds since a worker last delivered", now.delivery_seconds),
            ("convsessions_queue_depth", "Tasks that wait in the queue", now.queue_depth),
            ("convsessions_oldest_task_age_seconds", "For how long the oldest task is due", now.oldest_task_seconds),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, text, value=value)


def _by(name: str, text: str, label: str, kinds: Mapping[str, Kind]) -> Iterator[GaugeMetricFamily]:
    counts = GaugeMetricFamily(name, f"{text}, by {label}", labels=[label])
    ages = GaugeMetricFamily(f"{name}_oldest_age_seconds", f"{text}: age of the oldest, by {label}", labels=[label])
    for value, kind in kinds.items():
        counts.add_metric([value], kind.count)
        ages.add_metric([value], kind.oldest_seconds)
    yield counts
    yield ages


def _kind(name: str, text: str, kind: Kind) -> Iterator[GaugeMetricFamily]:
    yield GaugeMetricFamily(name, text, value=kind.count)
    yield GaugeMetricFamily(f"{name}_oldest_age_seconds", f"{text}: for how long at most", value=kind.oldest_seconds)
