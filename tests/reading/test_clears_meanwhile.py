"""Whoever reads while a clear takes the conversation away must see that in the journal, however the two fall."""

from __future__ import annotations

import contextlib

import pytest
from django.db import connection

from convsessions import operations
from convsessions.delivery import inline, threads
from convsessions.operations.sessions import as_cleared
from tests.histories import append, deliver_until_settled

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def clearing(sandbox, session):
    """A session whose conversation is about to be deleted, as it was read before."""
    deliver_until_settled(append(session, 3))
    session.refresh_from_db()
    operations.clear_session(session.pk)
    return session


@contextlib.contextmanager
def delivered_before_statement(number, session):
    """What the session waits for is delivered, in another connection, before this one's statement of this number."""
    count = iter(range(100))

    def execute(run, *args):
        if next(count) == number:
            threads.submit(operations.deliver, session.pk).result(timeout=30)
        return run(*args)

    with connection.execute_wrapper(execute):
        yield


@pytest.mark.parametrize("number", range(3))
def test_a_session_that_is_not_busy_is_as_its_writes_left_it(clearing, number):
    with delivered_before_statement(number, clearing):
        now, busy = inline._session_and_busy(clearing.pk)

    assert busy or now.conversation_id is None


@pytest.mark.parametrize("number", range(3))
def test_a_conversation_that_was_not_found_is_known_to_be_cleared(sandbox, clearing, number):
    sandbox.fault("lost_after", operation="delete_conversation")
    operations.deliver(clearing.pk, budget=0)
    assert sandbox.conversation(clearing.conversation_id)["deleted"]
    with delivered_before_statement(number, clearing):
        now = as_cleared(clearing)

    assert now is not None
    assert now.conversation_id is None
