"""A server that says "come back at once", and means it each time, is not asked without a pause."""

from __future__ import annotations

import time

import pytest

from convsessions import operations
from convsessions.models import RequestAttempt
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = ["0", "0.001", "-1", "Wed, 21 Oct 2015 07:28:00 GMT"]
"""The last one as well is what a server says whose clock is behind ours."""
MOST = 8
"""Requests in a second, with pauses of 0.05, 0.1, 0.2, 0.4, 0.4 … seconds between them."""


@pytest.mark.parametrize("told", AT_ONCE)
def test_a_request_that_is_to_be_repeated_at_once_backs_off(sandbox, session, told):
    sandbox.fault("rate_limited", operation="create_conversation", times=None, retry_after=told)
    write = append(session, 1)
    operations.deliver(session.pk, budget=1.0)

    assert 3 <= RequestAttempt.objects.count() <= MOST
    sandbox.clear_faults()
    assert deliver_until_settled(write).state == WriteState.SAVED


def test_a_reading_that_is_to_be_repeated_at_once_backs_off(sandbox, session):
    deliver_until_settled(append(session, 1))
    session.refresh_from_db()
    sandbox.fault("rate_limited", operation="list_items", times=None, retry_after="0")
    operations.pop_item(session.pk)
    operations.deliver(session.pk, budget=1.0)

    reads = [row for row in sandbox.requests(session.conversation_id) if row["method"] == "GET"]
    assert 3 <= len(reads) <= MOST


def test_a_wait_that_is_longer_than_the_first_one_is_as_told(sandbox, session, quick):
    quick["RETRY_BACKOFF"] = (0.5, 60.0)
    sandbox.fault("rate_limited", operation="create_conversation", retry_after="7")
    write = append(session, 1)
    operations.deliver(session.pk, budget=0)

    write.refresh_from_db()
    begun = RequestAttempt.objects.get().sent_at
    assert 7 <= (write.next_attempt_at - begun).total_seconds() < 9


def test_a_wait_that_outlasts_a_lease_is_left_to_the_sweep(sandbox, session, quick):
    quick["RETRY_BACKOFF"] = (0.05, 60.0)
    sandbox.fault("rate_limited", operation="create_conversation", retry_after="20")
    write = append(session, 1)
    began = time.monotonic()
    operations.deliver(session.pk, budget=30.0)

    assert time.monotonic() - began < 15
    session.refresh_from_db()
    write.refresh_from_db()
    assert (session.lease_token, session.wake_at) == (None, write.next_attempt_at)
