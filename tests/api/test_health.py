"""Whether writes get done."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import OperationalError
from django.utils import timezone
from rest_framework.test import APIClient

from convsessions import operations, tasks
from convsessions.api import health
from convsessions.journal import heartbeats
from convsessions.models import Heartbeat, WriteIntent

from .conftest import message

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = dt.timedelta(minutes=11)


@pytest.fixture
def beating(monkeypatch):
    """As in a process that has not given a sign of life yet."""
    monkeypatch.setattr(heartbeats, "_last", {})


def age(write: WriteIntent, **fields) -> None:
    WriteIntent.objects.filter(pk=write.pk).update(created_at=timezone.now() - LONG_AGO, **fields)


def test_an_idle_site_is_well(transactional_db):
    response = APIClient().get("/api/health/")

    assert (response.status_code, response.json()) == (
        200,
        {
            "status": "ok", "database": "ok", "queue_depth": 0, "open_writes": 0, "held_writes": 0,
            "ambiguous_writes": 0, "oldest_pending_seconds": None,
            "cluster": "unknown", "last_sweep_at": None, "last_sweep_seconds": None,
            "last_delivery_at": None, "last_delivery_seconds": None,
        },
    )  # fmt: skip


def test_it_answers_even_to_wrong_credentials(transactional_db):
    assert APIClient().get("/api/health/", headers={"Authorization": "Basic eDp5"}).status_code == 200


def test_it_counts_what_is_open_held_and_ambiguous(ambiguous, owner, sandbox):
    held = operations.create_session(owner=owner.user)
    operations.append_items(held.pk, [message()])
    sandbox.fault("quota")
    operations.deliver(held.pk, budget=0.1)
    operations.append_items(ambiguous.session_id, [message()])

    body = APIClient().get("/api/health/").json()

    assert (body["open_writes"], body["held_writes"], body["ambiguous_writes"]) == (3, 1, 1)
    assert 0 < body["oldest_pending_seconds"] < 60


def test_a_write_that_nobody_delivers_for_ten_minutes_is_a_failure(session):
    age(operations.append_items(session.pk, [message()]))

    response = APIClient().get("/api/health/")

    assert (response.status_code, response.json()["status"]) == (503, "failing")
    assert 659 < response.json()["oldest_pending_seconds"] < 720


def test_a_write_whose_next_attempt_is_long_overdue_is_a_failure(session):
    age(operations.append_items(session.pk, [message()]), next_attempt_at=timezone.now() - LONG_AGO)

    assert APIClient().get("/api/health/").status_code == 503


def test_a_write_that_waits_for_its_next_attempt_is_none(session):
    age(operations.append_items(session.pk, [message()]), next_attempt_at=timezone.now())

    assert APIClient().get("/api/health/").status_code == 200


def test_a_write_that_waits_behind_an_ambiguous_one_is_none(ambiguous):
    age(ambiguous)
    age(operations.append_items(ambiguous.session_id, [message()]))

    assert APIClient().get("/api/health/").status_code == 200


def test_a_long_queue_that_gets_on_is_none(saved):
    age(operations.append_items(saved.pk, [message()]))

    assert APIClient().get("/api/health/").status_code == 200


def test_a_long_write_that_gets_on_is_none(session, sandbox):
    write = operations.append_items(session.pk, [message()])
    sandbox.fault("lost_before", operation="append_items")
    operations.deliver(session.pk, budget=0.1)
    age(write, next_attempt_at=None)

    assert APIClient().get("/api/health/").status_code == 200


def test_it_tells_when_the_last_sweep_was(transactional_db):
    operations.sweep()
    operations.sweep()

    body = APIClient().get("/api/health/").json()

    assert body["cluster"] == "alive"
    assert 0 <= body["last_sweep_seconds"] < 60
    assert Heartbeat.objects.count() == 1


def test_a_cluster_that_does_not_sweep_any_more_is_late(transactional_db):
    operations.sweep()
    Heartbeat.objects.update(beat_at=timezone.now() - dt.timedelta(minutes=4))

    response = APIClient().get("/api/health/")

    assert (response.status_code, response.json()["cluster"]) == (200, "late")


def test_workers_that_deliver_while_no_sweep_comes_are_told_from_a_dead_cluster(session, sandbox, beating):
    operations.sweep()
    operations.append_items(session.pk, [message()])
    tasks.deliver_session(str(session.pk))
    Heartbeat.objects.filter(pk="sweep").update(beat_at=timezone.now() - dt.timedelta(hours=1))
    body = APIClient().get("/api/health/").json()
    assert body["cluster"] == "sweep_missing"
    assert 0 <= body["last_delivery_seconds"] < 60 < body["last_sweep_seconds"]

    Heartbeat.objects.update(beat_at=timezone.now() - dt.timedelta(hours=1))
    assert APIClient().get("/api/health/").json()["cluster"] == "late"


def test_a_sweep_without_workers_is_told_as_soon_as_work_has_waited(session, sandbox, beating):
    write = operations.append_items(session.pk, [message()])
    operations.sweep()
    assert APIClient().get("/api/health/").json()["cluster"] == "alive"
    WriteIntent.objects.filter(pk=write.pk).update(created_at=timezone.now() - dt.timedelta(minutes=4))
    response = APIClient().get("/api/health/")
    assert (response.status_code, response.json()["cluster"]) == (200, "not_delivering")

    tasks.deliver_session(str(operations.create_session().pk))  # a worker lives, and is busy elsewhere
    assert APIClient().get("/api/health/").json()["cluster"] == "alive"


def test_it_counts_what_waits_in_the_queue(transactional_db, quick, session):
    quick["DISPATCHER"] = "convsessions.enqueue.dispatch_with_django_q"

    operations.append_items(session.pk, [message()])

    assert APIClient().get("/api/health/").json()["queue_depth"] == 1


def test_a_queue_that_does_not_answer_is_no_secret(monkeypatch, transactional_db):
    def broken():
        raise ConnectionError("redis://user:password@host")

    monkeypatch.setattr("django_q.brokers.get_broker", broken)

    response = APIClient().get("/api/health/")

    assert (response.status_code, response.json()["queue_depth"]) == (200, None)
    assert b"password" not in response.content


def test_a_database_that_does_not_answer_is_a_failure_without_details(monkeypatch, transactional_db):
    def broken(now):
        raise OperationalError("password of user convsessions")

    monkeypatch.setattr(health, "_counts", broken)

    response = APIClient().get("/api/health/")

    assert (response.status_code, response.json()) == (503, {"status": "failing", "database": "unreachable"})
