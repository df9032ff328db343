"""A request that was judged absent and landed after all: its items are not taken for those of an equal write."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.states import Verdict, WriteState
from tests.histories import append, deliver_until_settled, eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def judged_soon(quick):
    quick |= {"REQUEST_TIMEOUT": 0.5, "LEASE_GRACE": 0.3, "SETTLE_SECONDS": 0.1}


def equal_write_of_unknown_outcome(sandbox, session):
    """A write like the one before; its request is lost, and the late one of the other lands."""
    write = append(session, 1)
    sandbox.fault("lost_before", operation="append_items")
    session.refresh_from_db()
    before = len(sandbox.items(session.conversation_id))
    operations.deliver(session.pk, budget=0)
    eventually(lambda: len(sandbox.items(session.conversation_id)) > before)
    return deliver_until_settled(write)


def test_a_late_copy_of_a_chunk_that_was_sent_again_is_not_the_next_writes(sandbox, session):
    sandbox.fault("late_apply", seconds=4.0)
    assert deliver_until_settled(append(session, 1)).state == WriteState.SAVED

    write = equal_write_of_unknown_outcome(sandbox, session)

    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, Verdict.CONTESTED)


def test_a_late_copy_of_a_cancelled_write_is_not_the_next_writes(sandbox, session):
    sandbox.fault("late_apply", seconds=4.0)
    first = append(session, 1)
    operations.deliver(session.pk, budget=0)  # creates the conversation
    operations.deliver(session.pk, budget=0)  # sends, and does not know
    operations.cancel_write(first.pk)
    assert deliver_until_settled(first).state == WriteState.CANCELLED

    write = equal_write_of_unknown_outcome(sandbox, session)

    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, Verdict.CONTESTED)


def test_a_late_copy_is_looked_for_though_the_server_asked_for_patience_in_between(sandbox, session, quick):
    quick["RETRY_BACKOFF"] = (0.05, 5.0)
    sandbox.fault("late_apply", seconds=1.5)
    sandbox.fault("rate_limited", operation="append_items", retry_after="3")
    write = deliver_until_settled(append(session, 1))

    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, Verdict.DUPLICATED)
    assert write.chunks.get().resent
