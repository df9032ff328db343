"""What becomes of a write whose key is missing when it is cancelled, abandoned, or taken away by a clear."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.exceptions import ContentUnreadable
from convsessions.models import Reconciliation
from convsessions.states import WriteState
from tests.histories import append, remote_texts
from tests.keys import HELD, hold_of, now

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def in_flight(sandbox, session):
    """A write of which a request has an unknown outcome."""
    sandbox.fault("lost_after", operation="append_items")
    write = append(session, 2)
    while not write.chunks.filter(state=WriteState.SENDING, requests__outcome="unknown").exists():
        operations.deliver(session.pk, budget=0)
    return write


def test_a_clear_takes_away_what_cannot_be_read(sandbox, session, keys, in_flight):
    """It is the way out for a key that is lost for good."""
    write = in_flight
    keys.lose()
    operations.deliver(session.pk)
    assert hold_of(write) == HELD
    clear = operations.clear_session(session.pk)
    after = append(session, 1, prefix="after")
    operations.deliver(session.pk)
    assert [now(one).state for one in (write, clear, after)] == ["cancelled", "saved", "saved"]
    assert Reconciliation.objects.get(write=write).evidence == {"code": "content_unreadable"}
    assert remote_texts(sandbox, session) == ["after0"]


def test_a_pending_write_can_be_cancelled_without_its_key(sandbox, session, keys):
    write = append(session, 2)
    keys.lose()
    operations.deliver(session.pk)
    operations.cancel_write(write.pk)
    assert now(write).state == WriteState.CANCELLED


def test_one_in_flight_that_is_cancelled_is_left_to_a_person_who_may_abandon_it(session, keys, in_flight):
    write = in_flight
    keys.lose()
    operations.cancel_write(write.pk)
    operations.deliver(session.pk)
    assert now(write).state == WriteState.AMBIGUOUS

    with pytest.raises(ContentUnreadable):
        operations.inspect_write(write.pk)
    with pytest.raises(ContentUnreadable):
        operations.resolve_write(write.pk, "accept", reason="so")
    assert now(write).state == WriteState.AMBIGUOUS
    operations.resolve_write(write.pk, "abandon", reason="the key is lost")
    assert now(write).state == WriteState.CANCELLED


def test_so_is_one_of_a_restored_journal_whose_key_was_not_restored(sandbox, session, keys):
    first = append(session, 1)
    operations.deliver(session.pk)
    write = append(session, 3, prefix="later")
    operations.after_restore()
    keys.lose()

    operations.deliver(session.pk)
    assert (now(first).state, hold_of(write)) == (WriteState.SAVED, HELD)
    operations.cancel_write(write.pk)
    operations.deliver(session.pk)

    assert (now(write).state, now(write).error_code) == (WriteState.AMBIGUOUS, "undecided")
