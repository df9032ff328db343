"""Waiting for a write, and what is refused inside a transaction."""

from __future__ import annotations

import threading

import pytest
from django.db import transaction

from convsessions import operations
from convsessions.exceptions import (
    WriteNotSettled,
)
from convsessions.states import WriteState
from tests.histories import append, deliver_and_close

pytestmark = pytest.mark.django_db(transaction=True)


def test_waiting_returns_the_settled_write(sandbox, session):
    write = append(session, 3)
    worker = threading.Thread(target=deliver_and_close, args=(session.pk,))
    worker.start()
    assert operations.wait_for_write(write.pk, timeout=10).state == WriteState.SAVED
    worker.join()


def test_waiting_tells_when_it_is_not_settled_in_time(session):
    write = append(session, 3)
    with pytest.raises(WriteNotSettled) as caught:
        operations.wait_for_write(write.pk, timeout=0.05)
    assert caught.value.write.pk == write.pk


def test_waiting_delivering_and_reading_are_refused_inside_a_transaction(sandbox, session):
    write = append(session, 3)
    operations.deliver(session.pk)
    for work in (
        lambda: operations.wait_for_write(write.pk, timeout=1),
        lambda: operations.deliver(session.pk),
        lambda: operations.get_items(session.pk),
        lambda: operations.verify_session(session.pk),
    ):
        with transaction.atomic(), pytest.raises(RuntimeError):
            work()
