"""Signs of life of workers: often enough to tell, and seldom enough to cost nothing."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from convsessions import operations, tasks
from convsessions.journal import heartbeats
from convsessions.models import Heartbeat
from tests.histories import append

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def another_process(monkeypatch):
    """Begin as a process that has not given a sign yet; call it to become another one."""

    def begin() -> None:
        monkeypatch.setattr(heartbeats, "_last", {})

    begin()
    return begin


def beat_of(name=Heartbeat.DELIVERY):
    return Heartbeat.objects.filter(pk=name).values_list("beat_at", flat=True).first()


def cost(session) -> list[str]:
    """What a delivery with nothing to do asks of the table."""
    with CaptureQueriesContext(connection) as captured:
        operations.work(session.pk)
    return [query["sql"].split()[0] for query in captured if "heartbeat" in query["sql"]]


WORKERS = {
    "task": lambda session: tasks.deliver_session(str(session.pk)),
    "ready task": lambda session: tasks.deliver_ready(str(session.pk)),
    "command": lambda session: operations.try_to_deliver(session.pk),
}


@pytest.mark.parametrize("worker", WORKERS.values(), ids=WORKERS)
def test_workers_give_a_sign(sandbox, session, worker):
    append(session, 1)
    assert beat_of() is None
    worker(session)
    assert beat_of() is not None


def test_who_delivers_for_itself_is_no_worker(sandbox, session):
    append(session, 1)
    operations.deliver(session.pk)
    assert beat_of() is None


def test_a_process_asks_once_in_a_while(session, another_process):
    assert cost(session) == ["UPDATE", "SELECT", "INSERT"]
    assert cost(session) == []
    another_process()
    assert cost(session) == ["UPDATE", "SELECT"]  # finds the note fresh, and leaves it


def test_a_note_that_has_aged_is_renewed(session, another_process):
    operations.work(session.pk)
    Heartbeat.objects.update(beat_at=F("beat_at") - dt.timedelta(seconds=heartbeats.BEAT_SECONDS))
    aged = beat_of()
    another_process()
    assert cost(session) == ["UPDATE"]
    assert beat_of() > aged


def test_a_database_that_refuses_the_note_does_not_make_a_delivery_fail(sandbox, session):
    write = append(session, 1)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE convsessions_heartbeat RENAME TO away")
    try:
        assert operations.try_to_deliver(session.pk) == "done"
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE away RENAME TO convsessions_heartbeat")
    assert operations.get_write(write.pk).settled
