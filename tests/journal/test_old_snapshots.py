"""A caller's transaction at REPEATABLE READ, whose snapshot is older than what others recorded meanwhile.

Django's default on MariaDB is READ COMMITTED, and a system check asks for it; but nothing may be lost for a host that
has another. (PostgreSQL refuses to lock a row that has changed since the snapshot.)
"""

from __future__ import annotations

import contextlib
import threading

import pytest
from django.db import connection, transaction

from convsessions import operations
from convsessions.exceptions import EvidenceChanged, IllegalMove
from convsessions.models import ConversationSession
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "mysql", reason="about MariaDB and MySQL"),
]


@contextlib.contextmanager
def old_snapshot():
    """A transaction that has read before the body of the with statement runs."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    try:
        with transaction.atomic():
            ConversationSession.objects.count()
            yield
    finally:
        connection.close()


def meanwhile(work):
    """What `work` returns, done and committed by another connection."""
    returned = []

    def run():
        try:
            returned.append(work())
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return returned[0]


def test_a_clear_supersedes_a_write_and_its_chunks(session):
    with old_snapshot():
        write = meanwhile(lambda: append(session, 1))
        operations.clear_session(session.pk)

    write.refresh_from_db()
    assert write.state == WriteState.CANCELLED
    assert write.chunks.get().state == WriteState.CANCELLED


def test_a_clear_keeps_the_promise_of_another_to_erase(session):
    with old_snapshot():
        meanwhile(lambda: operations.clear_session(session.pk, erase=True))
        clear = operations.clear_session(session.pk)

    assert clear.erase


def test_a_second_deletion_finds_the_first(session):
    with old_snapshot():
        first = meanwhile(lambda: operations.delete_session(session.pk))
        assert operations.delete_session(session.pk) == first


def test_a_change_of_metadata_goes_behind_a_write(session):
    with old_snapshot():
        meanwhile(lambda: append(session, 1))
        write = operations.update_session(session.pk, metadata={"a": "b"}).write

    assert write.state == WriteState.PENDING


def test_a_repeated_creation_finds_the_first(transactional_db):
    with old_snapshot():
        first = meanwhile(lambda: operations.open_session(key="k", idempotency_key="same"))
        again = operations.open_session(key="k", idempotency_key="same")

    assert (again.session, again.is_new) == (first.session, False)


def test_a_refused_write_is_not_tried_again_behind_a_clear(sandbox, session):
    sandbox.fault("error_before", operation="append_items", status=400, code="x", param="include")
    refused = deliver_until_settled(append(session, 3))
    with old_snapshot():
        meanwhile(lambda: operations.clear_session(session.pk))
        with pytest.raises(IllegalMove):
            operations.retry_write(refused.pk)


def test_a_resolution_on_evidence_that_has_changed_is_refused(sandbox, session):
    sandbox.fault("rewritten")
    write = deliver_until_settled(append(session, 1))
    with old_snapshot():
        operations.get_write(write.pk)

        def looked_at_again():
            operations.reconcile_write(write.pk)
            return deliver_until_settled(write)

        assert meanwhile(looked_at_again).state == WriteState.AMBIGUOUS
        with pytest.raises(EvidenceChanged):
            operations.reconcile_write(write.pk)
