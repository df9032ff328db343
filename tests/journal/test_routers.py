"""Hosts with routers: what the journal reads it reads where it writes, never from a replica that lags."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.states import Resolution, WriteState
from tests.histories import append, messages

pytestmark = pytest.mark.django_db(transaction=True)


class ReadsFromReplica:
    """A router as hosts with a replica have it; any read that it decides about fails, for there is no replica here."""

    def db_for_read(self, model, **hints):
        return "replica" if model._meta.app_label == "convsessions" else None

    def db_for_write(self, model, **hints):
        return "default"


@pytest.fixture
def replica(settings):
    settings.DATABASE_ROUTERS = [f"{__name__}.ReadsFromReplica"]


def test_the_router_is_in_force(replica, session):
    with pytest.raises(Exception, match="replica"):
        session.writes.exists()


def deliver(write):
    operations.deliver(write.session_id)
    return operations.get_write(write.pk)


def test_the_main_job_reads_nothing_from_a_replica(sandbox, replica, session):
    write = append(session, 45)
    sandbox.fault("lost_after", operation="append_items", skip=1)
    sandbox.fault("lost_before", operation="append_items", skip=2)
    assert deliver(write).state == WriteState.SAVED
    assert operations.wait_for_write(write.pk, timeout=1).items_saved == 45
    assert len(operations.get_items(session.pk, limit=100)["data"]) == 45
    assert not operations.verify_session(session.pk)
    assert deliver(operations.pop_item(session.pk)).state == WriteState.SAVED
    assert deliver(operations.clear_session(session.pk)).state == WriteState.SAVED


def test_repairs_read_nothing_from_a_replica(sandbox, replica, session):
    write = append(session, 5)
    sandbox.fault("twice", lost=True)
    assert deliver(write).state == WriteState.AMBIGUOUS
    operations.reconcile_write(write.pk)
    assert deliver(write).state == WriteState.AMBIGUOUS
    token = operations.inspect_write(write.pk).token
    operations.resolve_write(write.pk, Resolution.REMOVE_DUPLICATES, reason="x", evidence=token)
    assert deliver(write).state == WriteState.SAVED


def test_sessions_writes_and_sweeps_read_nothing_from_a_replica(sandbox, replica):
    session = operations.create_session(key="k", metadata={"a": "b"})
    assert operations.get_session(key="k").pk == session.pk
    first = operations.append_items(session.pk, messages(1), idempotency_key="i")
    assert operations.append_items(session.pk, messages(1), idempotency_key="i").pk == first.pk
    operations.cancel_write(first.pk)
    refused = append(session, 1)
    assert operations.sweep() == 1
    sandbox.fault("error_before", operation="append_items", status=400)
    assert deliver(refused).state == WriteState.REFUSED
    operations.retry_write(refused.pk)
    assert deliver(refused).state == WriteState.SAVED
    operations.update_session(session.pk, metadata={"a": "c"})
    operations.deliver(session.pk)
    operations.delete_session(session.pk)
    assert operations.due_sessions() != []
