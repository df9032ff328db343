"""The sweep: what nobody is doing is rung for, once, however much it is."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from convsessions import operations
from convsessions.models import ConversationSession
from convsessions.operations import sweeping
from tests.histories import append
from tests.queue.cluster import run_in_a_process, site_environment

pytestmark = pytest.mark.django_db(transaction=True)

SWEEP = """
from convsessions.operations import sweeping
sweeping.SWEEP_BATCH = 2
print(sweeping.sweep())
"""


@pytest.fixture
def rung(monkeypatch):
    """The ids of the sessions whose doorbell rang."""
    found = []
    monkeypatch.setattr("convsessions.enqueue.dispatch_nowhere", found.append)
    return found


def due(number):
    found = [operations.create_session() for _ in range(number)]
    for session in found:
        append(session, 1)
    return [str(session.pk) for session in found]


def test_one_sweep_rings_for_all_in_the_order_of_their_wait_and_the_next_for_none(rung, monkeypatch):
    monkeypatch.setattr(sweeping, "SWEEP_BATCH", 2)
    sessions = due(5)
    rung.clear()

    assert operations.sweep() == 5
    assert rung == sessions
    assert operations.sweep() == 0


def test_a_sweep_ends_in_time_and_the_next_one_goes_on(rung, monkeypatch):
    monkeypatch.setattr(sweeping, "SWEEP_BATCH", 2)
    monkeypatch.setattr(sweeping, "SWEEP_SECONDS", 0.0)
    sessions = due(5)
    rung.clear()

    assert [operations.sweep() for _ in range(4)] == [2, 2, 1, 0]
    assert rung == sessions


@pytest.mark.skipif(connection.vendor == "sqlite", reason="needs SKIP LOCKED")
def test_sessions_that_somebody_has_locked_end_the_sweep_and_do_not_keep_it_waiting(sandbox):
    locked = due(3)
    with transaction.atomic():
        assert len(ConversationSession.objects.select_for_update().filter(pk__in=locked)) == 3
        said, _ = run_in_a_process(SWEEP, site_environment(sandbox.base_url, {})).communicate(timeout=15)
    assert said.strip() == "0"
