"""A clear or a deletion that erases: every item is deleted before the conversation, whatever gets lost on the way."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.exceptions import IllegalMove, InvalidInput
from convsessions.models import WriteChunk
from convsessions.remote.clients import default_client
from convsessions.states import HoldCode, WriteState
from tests.histories import append, deliver_until_settled, messages, remote_texts

pytestmark = pytest.mark.django_db(transaction=True)


def conversation_of(session, count):
    """The id of the conversation, which holds `count` items now."""
    deliver_until_settled(append(session, count))
    session.refresh_from_db()
    return session.conversation_id


def assert_nothing_left(sandbox, session, conversation_id):
    gone = sandbox.conversation(conversation_id)
    assert (gone["items"], gone["deleted"]) == ([], True)
    chunks = WriteChunk.objects.filter(write__session=session)
    assert set(chunks.values_list("payload", "original")) == {("", None)}


@pytest.mark.parametrize("kind", ["lost_after", "lost_before", "error_after", "hang_after", "html"])
@pytest.mark.parametrize("operation", ["delete_item", "list_items", "delete_conversation"])
def test_erasure_leaves_nothing_though_a_reply_gets_lost(sandbox, session, kind, operation):
    conversation_id = conversation_of(session, 3)
    sandbox.fault(kind, operation=operation, skip=0 if operation == "delete_conversation" else 1)
    write = deliver_until_settled(operations.clear_session(session.pk, erase=True))

    assert (write.state, write.items_saved, write.items_total) == (WriteState.SAVED, 3, 3)
    assert_nothing_left(sandbox, session, conversation_id)


def test_a_long_session_is_erased_page_by_page(sandbox, session):
    conversation_id = conversation_of(session, 200)
    sandbox.fault("lost_after", operation="delete_item", skip=110)
    write = deliver_until_settled(operations.clear_session(session.pk, erase=True), seconds=180)

    assert (write.state, write.items_saved, write.items_total) == (WriteState.SAVED, 200, 200)
    assert_nothing_left(sandbox, session, conversation_id)


@pytest.mark.parametrize("kind", ["stale_read", "empty_page", "read_error"])
def test_erasure_does_not_believe_that_nothing_is_there(sandbox, session, kind):
    conversation_id = conversation_of(session, 3)
    sandbox.fault(kind, operation="list_items", times=2, **({"count": 3} if kind == "stale_read" else {}))
    deliver_until_settled(operations.clear_session(session.pk, erase=True))
    assert_nothing_left(sandbox, session, conversation_id)


def test_a_clear_without_erasure_leaves_the_items_as_the_api_does(sandbox, session):
    conversation_id = conversation_of(session, 3)
    deliver_until_settled(operations.clear_session(session.pk))
    assert len(sandbox.items(conversation_id)) == 3
    assert WriteChunk.objects.get().payload != ""


def test_the_setting_makes_erasure_the_default(sandbox, session, settings):
    settings.CONVSESSIONS["ERASE_ITEMS_ON_CLEAR"] = True
    conversation_id = conversation_of(session, 3)
    deliver_until_settled(operations.delete_session(session.pk))
    assert_nothing_left(sandbox, session, conversation_id)


def test_foreign_items_and_popped_content_go_too(sandbox, session):
    deliver_until_settled(append(session, 3))
    pop = deliver_until_settled(operations.pop_item(session.pk))
    session.refresh_from_db()
    conversation_id = session.conversation_id
    sandbox.append_foreign(conversation_id, messages(2, prefix="foreign"))
    deliver_until_settled(operations.clear_session(session.pk, erase=True))

    assert_nothing_left(sandbox, session, conversation_id)
    pop.refresh_from_db()
    assert pop.popped is None


def test_a_second_clear_keeps_the_promise_of_the_first(sandbox, session):
    conversation_id = conversation_of(session, 3)
    operations.clear_session(session.pk, erase=True)
    deliver_until_settled(operations.clear_session(session.pk))
    assert_nothing_left(sandbox, session, conversation_id)


def test_an_erasure_that_has_begun_cannot_be_cancelled(sandbox, session):
    conversation_id = conversation_of(session, 3)
    sandbox.fault("error_before", operation="delete_item", skip=1, status=500)
    erasing = operations.clear_session(session.pk, erase=True)
    operations.deliver(session.pk, budget=0)
    operations.deliver(session.pk, budget=0)
    assert operations.get_write(erasing.pk).items_total == 3
    operations.cancel_write(erasing.pk)

    assert deliver_until_settled(erasing).state == WriteState.SAVED
    assert_nothing_left(sandbox, session, conversation_id)


def test_under_a_key_that_does_not_see_the_conversation_nothing_counts_as_erased(sandbox, session):
    deliver_until_settled(append(session, 3))
    sandbox.fault("error_before", operation="list_items", status=404, times=None)
    write = deliver_until_settled(operations.clear_session(session.pk, erase=True))

    assert (write.state, write.hold_code) == (WriteState.PENDING, HoldCode.MISSING)
    assert len(remote_texts(sandbox, session)) == 3


@pytest.mark.parametrize("steps", [0, 2], ids=["not begun", "begun"])
def test_where_the_conversation_was_deleted_elsewhere_it_can_be_cancelled_and_cleared(sandbox, session, steps):
    deliver_until_settled(append(session, 3))
    session.refresh_from_db()
    erasing = operations.clear_session(session.pk, erase=True)
    for _number in range(steps):
        operations.deliver(session.pk, budget=0)
    assert bool(operations.get_write(erasing.pk).items_total) == bool(steps)
    default_client(session).conversations.delete(session.conversation_id)
    assert deliver_until_settled(erasing).hold_code == HoldCode.MISSING

    operations.cancel_write(erasing.pk)
    assert deliver_until_settled(erasing).state == WriteState.CANCELLED

    assert deliver_until_settled(operations.clear_session(session.pk)).state == WriteState.SAVED
    assert deliver_until_settled(append(session, 1, prefix="new")).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["new0"]


def test_what_was_refused_before_an_erasure_cannot_be_tried_again(sandbox, session):
    sandbox.fault("error_before", operation="append_items", status=400, code="x", param="include")
    refused = deliver_until_settled(append(session, 3))
    deliver_until_settled(operations.clear_session(session.pk, erase=True))
    with pytest.raises(IllegalMove):
        operations.retry_write(refused.pk)


def test_an_append_after_an_erasure_starts_anew(sandbox, session):
    deliver_until_settled(append(session, 3))
    operations.clear_session(session.pk, erase=True)
    write = deliver_until_settled(append(session, 2, prefix="new"))
    assert write.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["new0", "new1"]


@pytest.mark.parametrize("erase", [1, "yes", []])
def test_erase_is_true_or_false(session, erase):
    with pytest.raises(InvalidInput) as caught:
        operations.clear_session(session.pk, erase=erase)
    assert caught.value.field == "erase"
