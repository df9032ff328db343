"""One worker a session, whoever else is there, whenever the first one wakes up again."""

from __future__ import annotations

import datetime as dt
import itertools
import threading

import pytest
from django.core.serializers import serialize
from django.db import connection, transaction
from django.utils import timezone

from convsessions import operations
from convsessions.delivery import protocol
from convsessions.delivery.drivers import perform
from convsessions.delivery.protocol import Ending
from convsessions.exceptions import LeaseLost
from convsessions.journal import leases
from convsessions.journal.locking import alias, lock_session
from convsessions.journal.turn import Turn
from convsessions.models import ConversationSession, RequestAttempt, WriteChunk, WriteIntent
from convsessions.remote import clients, clock
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled, eventually, messages, remote_texts, texts

pytestmark = pytest.mark.django_db(transaction=True)


def journal() -> str:
    """All rows of the journal, as text."""
    return "".join(
        serialize("json", model.objects.order_by("pk"))
        for model in (ConversationSession, WriteIntent, WriteChunk, RequestAttempt)
    )


def test_a_session_with_a_live_lease_is_left_alone(sandbox, session):
    append(session, 25)
    worker = protocol.deliver(session.pk, using=alias())
    worker.send(None)

    assert operations.deliver(session.pk).ending is Ending.NOTHING_TO_DO
    worker.close()


def test_a_worker_that_wakes_after_its_lease_was_taken_over_changes_nothing(sandbox, session):
    write = append(session, 25)
    stalled = protocol.deliver(session.pk, using=alias())
    request = stalled.send(None)
    outcome = perform(request, clients.client_for(None))  # the reply is there, and then the worker stalls
    settled = deliver_until_settled(write)
    assert settled.state == WriteState.SAVED
    before = journal()

    with pytest.raises(StopIteration) as end:
        stalled.send(outcome)

    assert end.value.value.ending is Ending.LEASE_LOST
    assert journal() == before
    assert remote_texts(sandbox, session) == texts(messages(25))


def test_a_request_prepared_before_a_long_pause_is_not_sent_after_it(sandbox, session):
    append(session, 25)
    stalled = protocol.deliver(session.pk, using=alias())
    request = stalled.send(None)
    eventually(lambda: perform(request, clients.client_for(None)).code == "deadline_passed_before_sending", seconds=5)
    stalled.close()


def test_an_expired_lease_that_nobody_took_is_still_good(session):
    append(session, 1)
    with leases.claim(session.pk, using=alias()) as claimed:
        lease, _ = claimed
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    ConversationSession.objects.update(lease_expires_at=past)

    leases.renew(lease)

    session.refresh_from_db()
    assert session.lease_expires_at > past


def test_every_turn_leaves_another_expiry_behind_though_the_clock_stands_still(session):
    append(session, 1)
    with leases.claim(session.pk, using=alias()):
        pass
    expiries, moment = [], None
    for _ in range(3):
        with transaction.atomic():
            locked, now = lock_session(session.pk, using=alias())
            moment = moment or now
            Turn(locked, moment, clock.now(), alias()).close()
        session.refresh_from_db()
        expiries.append(session.lease_expires_at)
    assert all(one != following for one, following in itertools.pairwise(expiries))


def test_a_foreign_token_stops_the_turn(session):
    append(session, 1)
    with leases.claim(session.pk, using=alias()) as claimed:
        lease, _ = claimed
    ConversationSession.objects.update(lease_expires_at=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    with leases.claim(session.pk, using=alias()):
        pass
    with pytest.raises(LeaseLost), leases.turn(lease):
        raise AssertionError("the turn must not begin")


def test_two_workers_at_the_same_instant_get_one_lease(session):
    append(session, 1)
    barrier, claims = threading.Barrier(2), []

    def claim():
        try:
            barrier.wait()
            with leases.claim(session.pk, using=alias()) as claimed:
                claims.append(claimed is not None)
        finally:
            connection.close()

    threads = [threading.Thread(target=claim) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claims) == [False, True]


def test_the_lock_of_one_session_does_not_keep_another_waiting(sandbox, session):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite locks the whole database")
    other = operations.create_session()
    held, done = threading.Event(), threading.Event()

    def hold():
        try:
            with transaction.atomic():
                lock_session(session.pk, using=alias())
                held.set()
                done.wait(10)
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(10)
    write = append(other, 3)
    operations.deliver(other.pk)
    assert operations.get_write(write.pk).state == WriteState.SAVED
    done.set()
    holder.join()


def test_leases_go_by_the_clock_of_the_database(session, monkeypatch):
    """A machine whose clock is a day ahead must not think that everybody's lease has run out."""
    append(session, 1)
    with leases.claim(session.pk, using=alias()):
        pass
    tomorrow = timezone.now() + dt.timedelta(days=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: tomorrow)
    with leases.claim(session.pk, using=alias()) as claimed:
        assert claimed is None
    session.refresh_from_db()
    assert session.lease_expires_at < tomorrow


def test_a_session_whose_last_write_was_cancelled_is_not_looked_at_again(session):
    write = append(session, 1)
    operations.cancel_write(write.pk)
    assert operations.deliver(session.pk).ending is Ending.NOTHING_TO_DO

    session.refresh_from_db()
    assert session.wake_at is None
    assert operations.sweep() == 0
