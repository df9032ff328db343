"""Cancelling, clearing and popping, through the journal to the remote."""

from __future__ import annotations

import threading

import pytest

from convsessions import operations
from convsessions.exceptions import (
    IllegalMove,
)
from convsessions.models import ConversationSession
from convsessions.states import CancelCause, WriteKind, WriteState
from tests.histories import (
    append,
    append_requests,
    deliver_and_close,
    deliver_until_settled,
    eventually,
    remote_texts,
    texts,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_pending_write_is_cancelled_at_once(sandbox, session):
    first, second = append(session, 3), append(session, 3, prefix="second")
    operations.cancel_write(first.pk)
    operations.deliver(session.pk)

    cancelled = operations.get_write(first.pk)
    assert (cancelled.state, cancelled.cancel_cause) == (WriteState.CANCELLED, CancelCause.AUTHOR)
    assert operations.get_write(second.pk).state == WriteState.SAVED
    assert len(sandbox.items(ConversationSession.objects.get().conversation_id)) == 3


def test_a_settled_write_cannot_be_cancelled(sandbox, session):
    write = append(session, 1)
    operations.deliver(session.pk)
    with pytest.raises(IllegalMove):
        operations.cancel_write(write.pk)


def test_a_cancelled_upload_says_what_of_it_is_saved(sandbox, session):
    write = append(session, 60)
    operations.deliver(session.pk, budget=0)  # creates the conversation
    operations.deliver(session.pk, budget=0)  # sends the first chunk
    operations.cancel_write(write.pk)
    operations.deliver(session.pk)

    cancelled = operations.get_write(write.pk)
    assert (cancelled.state, cancelled.items_saved) == (WriteState.CANCELLED, 20)
    assert list(cancelled.chunks.values_list("state", flat=True)) == ["saved", "cancelled", "cancelled"]
    assert len(sandbox.items(ConversationSession.objects.get().conversation_id)) == 20


def test_a_clear_supersedes_what_is_queued_before_it(sandbox, session):
    first = append(session, 1)
    operations.deliver(session.pk)
    queued = [append(session, 1), operations.pop_item(session.pk)]
    clear = operations.clear_session(session.pk)
    after = append(session, 2, prefix="after")
    operations.deliver(session.pk)

    for write in queued:
        dropped = operations.get_write(write.pk)
        assert (dropped.state, dropped.cancel_cause) == (WriteState.CANCELLED, CancelCause.CLEAR)
    assert [operations.get_write(write.pk).state for write in (first, clear, after)] == [WriteState.SAVED] * 3
    session.refresh_from_db()
    assert session.generation == 1
    assert operations.get_write(after.pk).generation == 1
    assert len(sandbox.items(session.conversation_id)) == 2


def test_a_clear_supersedes_an_ambiguous_write(sandbox, session):
    write = append(session, 5)
    sandbox.fault("rewritten", operation="append_items")
    operations.deliver(session.pk)
    assert operations.get_write(write.pk).state == WriteState.AMBIGUOUS

    clear = operations.clear_session(session.pk)
    operations.deliver(session.pk)

    assert operations.get_write(write.pk).state == WriteState.CANCELLED
    assert operations.get_write(clear.pk).state == WriteState.SAVED


def test_a_clear_during_an_upload_settles_what_is_in_flight_first(sandbox, session):
    write = append(session, 60)
    sandbox.fault("hang_after", operation="append_items", skip=1, seconds=0.5)
    worker = threading.Thread(target=deliver_and_close, args=(session.pk,))
    worker.start()
    eventually(lambda: [row for row in append_requests(sandbox, session)[1:] if row["finished_at"] is None])
    session.refresh_from_db()
    conversation_id = session.conversation_id
    clear = operations.clear_session(session.pk)
    worker.join()

    stopped = operations.get_write(write.pk)
    assert (stopped.state, stopped.items_saved) == (WriteState.CANCELLED, 40)
    assert operations.get_write(clear.pk).state == WriteState.SAVED
    assert sandbox.conversation(conversation_id)["deleted"] is True
    assert len(sandbox.items(conversation_id)) == 40


def test_pop_removes_the_newest_item_and_keeps_it(sandbox, session):
    append(session, 3)
    pop = operations.pop_item(session.pk)
    after = append(session, 1, prefix="after")
    operations.deliver(session.pk)

    popped = operations.get_write(pop.pk)
    assert (popped.kind, popped.state) == (WriteKind.POP, WriteState.SAVED)
    assert popped.popped["content"][0]["text"] == "m2"
    assert operations.get_write(after.pk).state == WriteState.SAVED
    session.refresh_from_db()
    assert [item["content"][0]["text"] for item in sandbox.items(session.conversation_id)] == ["m0", "m1", "after0"]


@pytest.mark.parametrize("kind", ["lost_after", "lost_before", "error_after", "error_before"])
def test_pop_never_removes_a_second_item(sandbox, session, kind):
    append(session, 3)
    operations.pop_item(session.pk)
    sandbox.fault(kind, operation="delete_item")
    operations.deliver(session.pk)

    session.refresh_from_db()
    assert len(sandbox.items(session.conversation_id)) == 2


@pytest.mark.parametrize("kind", ["lost_after", "lost_before", "error_after", "error_before"])
def test_clear_survives_a_lost_reply(sandbox, session, kind):
    append(session, 3)
    operations.deliver(session.pk)
    session.refresh_from_db()
    conversation_id = session.conversation_id
    clear = operations.clear_session(session.pk)
    sandbox.fault(kind, operation="delete_conversation")
    operations.deliver(session.pk)

    assert operations.get_write(clear.pk).state == WriteState.SAVED
    assert sandbox.conversation(conversation_id)["deleted"] is True


def test_a_pop_whose_deletion_may_have_been_carried_out_cannot_be_cancelled(sandbox, session):
    deliver_until_settled(append(session, 2))
    pop = operations.pop_item(session.pk)
    sandbox.fault("lost_after", operation="delete_item")
    operations.deliver(session.pk, budget=0)  # reads which item it is
    operations.deliver(session.pk, budget=0)  # deletes it, and does not know
    operations.cancel_write(pop.pk)
    settled = deliver_until_settled(pop)

    assert (settled.state, texts([settled.popped])) == (WriteState.SAVED, ["m1"])
    assert remote_texts(sandbox, session) == ["m0"]
