"""A write that may be done, or is in part, is not called refused because a later request of it is."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.states import Resolution, Verdict, WriteState
from tests.histories import append, deliver_until_settled, remote_texts

pytestmark = pytest.mark.django_db(transaction=True)


def refuse_again(sandbox, operation: str) -> None:
    """The reply to the first request is lost, though it was carried out; the second one is refused."""
    sandbox.fault("lost_after", operation=operation)
    sandbox.fault("error_before", operation=operation, status=400, code="nonsense")


WRITES = {
    "delete_item": operations.pop_item,
    "delete_conversation": operations.clear_session,
    "update_conversation": lambda pk: operations.update_session(pk, metadata={"a": "b"}).write,
}


@pytest.mark.parametrize("operation", WRITES)
def test_a_refusal_after_a_lost_reply_is_for_a_person(sandbox, session, operation):
    deliver_until_settled(append(session, 2))
    refuse_again(sandbox, operation)
    write = deliver_until_settled(WRITES[operation](session.pk))

    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, Verdict.UNDECIDED)
    operations.reconcile_write(write.pk)
    assert deliver_until_settled(write).state == WriteState.SAVED


def test_a_refused_deletion_in_a_rollback_is_for_a_person_and_can_be_taken_up_again(sandbox, session):
    sandbox.fault("twice", lost=True)
    write = deliver_until_settled(append(session, 2))
    operations.resolve_write(write.pk, Resolution.ROLLBACK, reason="twice")
    sandbox.fault("error_before", operation="delete_item", skip=1, status=400, code="nonsense")
    write = deliver_until_settled(write)

    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, Verdict.UNDECIDED)
    operations.reconcile_write(write.pk)
    assert deliver_until_settled(write).state == WriteState.CANCELLED
    assert remote_texts(sandbox, session) == []
