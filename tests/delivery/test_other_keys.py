"""A key of another project finds neither a conversation nor its items (404): nothing counts as deleted by that."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.states import HoldCode, Resolution, WriteState
from tests.histories import append, deliver_until_settled, remote_texts

pytestmark = pytest.mark.django_db(transaction=True)


def under_another_key(sandbox) -> None:
    for operation in ("delete_item", "list_items"):
        sandbox.fault("error_before", operation=operation, status=404, times=None)


def test_a_pop_is_not_done_by_a_key_that_sees_nothing(sandbox, session):
    deliver_until_settled(append(session, 2))
    pop = operations.pop_item(session.pk)
    operations.deliver(session.pk, budget=0)  # reads which item it is
    under_another_key(sandbox)
    held = deliver_until_settled(pop)

    assert (held.state, held.hold_code) == (WriteState.SENDING, HoldCode.MISSING)
    sandbox.clear_faults()
    operations.retry_write(pop.pk)
    assert deliver_until_settled(pop).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["m0"]


def test_a_rollback_is_not_done_by_a_key_that_sees_nothing(sandbox, session):
    sandbox.fault("twice", lost=True)
    write = deliver_until_settled(append(session, 2))
    operations.resolve_write(write.pk, Resolution.ROLLBACK, reason="twice")
    under_another_key(sandbox)
    held = deliver_until_settled(write)

    assert (held.state, held.hold_code) == (WriteState.SENDING, HoldCode.MISSING)
    sandbox.clear_faults()
    operations.retry_write(write.pk)
    assert deliver_until_settled(write).state == WriteState.CANCELLED
    assert remote_texts(sandbox, session) == []


@pytest.mark.parametrize("kind", ["read_error", "lost_before", "html"])
def test_an_item_that_is_gone_is_looked_for_until_the_conversation_is_seen(sandbox, session, kind):
    deliver_until_settled(append(session, 2))
    pop = operations.pop_item(session.pk)
    sandbox.fault("lost_after", operation="delete_item")
    sandbox.fault(kind, operation="list_items", skip=1, times=2)

    assert deliver_until_settled(pop).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["m0"]
