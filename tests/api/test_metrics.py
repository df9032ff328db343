"""Metrics: the gauges that an alert is made of, for those who may view writes, in the format that Prometheus reads."""

from __future__ import annotations

import pytest
from django.urls import include, path
from prometheus_client.parser import text_string_to_metric_families

from convsessions import operations
from convsessions.api.metrics import Metrics
from convsessions.journal import heartbeats
from tests.histories import append

from .conftest import person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

urlpatterns = [path("metrics/", Metrics.as_view()), path("api/", include("convsessions.api.urls"))]
ACCEPT = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def gauges(client) -> dict[tuple[str, ...], float]:
    """name and labels -> value"""
    reply = client.get("/metrics/", headers={"Accept": ACCEPT})
    assert (reply.status_code, reply["Content-Type"].split(";")[0]) == (200, "text/plain")
    families = text_string_to_metric_families(reply.content.decode())
    return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}


def test_counts_what_waits_and_what_needs_a_person(sandbox, session, quick, monkeypatch):
    scraper = person("scraper", "view_writeintent")
    empty = gauges(scraper)
    assert empty["convsessions_open_writes", "pending"] == 0
    assert empty["convsessions_held_writes", "bad_key"] == 0
    assert ("convsessions_last_sweep_age_seconds",) not in empty

    quick["RETRY_BACKOFF"] = (600.0, 600.0)
    sandbox.fault("bad_key", times=1)
    append(session, 3)
    operations.deliver(session.pk)
    append(operations.create_session(), 1)
    operations.sweep()
    monkeypatch.setattr(heartbeats, "_last", {})
    operations.work(operations.create_session().pk)

    now = gauges(scraper)
    assert now["convsessions_open_writes", "pending"] == 1
    assert now["convsessions_open_writes", "sending"] == 1
    assert now["convsessions_held_writes", "bad_key"] == 1
    assert now["convsessions_held_writes", "content_unreadable"] == 0
    assert now["convsessions_open_writes_oldest_age_seconds", "pending"] > 0
    assert now["convsessions_open_writes", "ambiguous"] == 0
    assert now["convsessions_last_sweep_age_seconds",] < 60
    assert now["convsessions_last_delivery_age_seconds",] < 60
    assert set(empty) < set(now), "a gauge must not vanish when there is something to count"


def test_is_for_those_who_may_view_writes():
    assert person("scraper", "view_writeintent").get("/metrics/").status_code == 200
    assert person("stranger").get("/metrics/").status_code == 403
    from rest_framework.test import APIClient

    assert APIClient().get("/metrics/").status_code in {401, 403}
