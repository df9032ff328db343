"""Sessions that are opened, deleted and taken over at the same moment, or more than once."""

from __future__ import annotations

import threading

import openai
import pytest
from django.db import connection

from convsessions import operations
from convsessions.exceptions import ConversationTaken
from convsessions.models import ConversationSession
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled, eventually, remote_texts

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def unknown_conversation(sandbox) -> str:
    """The id of a conversation that no session stands for."""
    with openai.OpenAI(max_retries=0) as client:
        return client.conversations.create().id


class Overtaken:
    """Lets `other` run to its end, in a thread of its own, right after the first statement."""

    def __init__(self, other) -> None:
        self.other, self.done = other, False

    def __call__(self, execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if not self.done:
            self.done = True
            thread = threading.Thread(target=self._run)
            thread.start()
            thread.join()
        return result

    def _run(self) -> None:
        try:
            self.other()
        finally:
            connection.close()


def adopting(conversation_id, key):
    return operations.open_session(conversation_id=conversation_id, idempotency_key=key)


def test_of_two_adoptions_with_one_key_the_second_is_a_repetition(unknown_conversation, transactional_db):
    firsts = []
    overtaking = Overtaken(lambda: firsts.append(adopting(unknown_conversation, "same")))
    with connection.execute_wrapper(overtaking):
        second = adopting(unknown_conversation, "same")

    assert (firsts[0].is_new, second.is_new) == (True, False)
    assert firsts[0].session == second.session


def test_of_two_adoptions_with_different_keys_the_second_is_refused(unknown_conversation, transactional_db):
    overtaking = Overtaken(lambda: adopting(unknown_conversation, "one"))
    with connection.execute_wrapper(overtaking), pytest.raises(ConversationTaken):
        adopting(unknown_conversation, "other")


def test_a_deletion_that_the_api_refused_can_be_tried_again(sandbox, session):
    deliver_until_settled(append(session, 1))
    session.refresh_from_db()
    sandbox.fault("error_before", operation="delete_conversation", status=400, code="busy")
    write = deliver_until_settled(operations.delete_session(session.pk))
    assert write.state == WriteState.REFUSED

    operations.retry_write(write.pk)

    assert deliver_until_settled(write).state == WriteState.SAVED
    assert sandbox.conversation(session.conversation_id)["deleted"]


def test_a_deletion_that_is_not_begun_can_still_be_made_to_erase(sandbox, session):
    deliver_until_settled(append(session, 2))
    session.refresh_from_db()
    first = operations.delete_session(session.pk)
    again = operations.delete_session(session.pk, erase=True)

    assert (first.pk, again.erase) == (again.pk, True)
    deliver_until_settled(again)
    assert sandbox.items(session.conversation_id) == []


def test_a_deletion_that_is_done_says_that_it_did_not_erase(sandbox, session):
    deliver_until_settled(append(session, 2))
    deliver_until_settled(operations.delete_session(session.pk))
    assert not operations.delete_session(session.pk, erase=True).erase


def test_a_conversation_of_another_session_is_never_taken_for_a_new_one(sandbox, session):
    """A cache in between answers the creation with what it answered before."""
    deliver_until_settled(append(session, 1))
    session.refresh_from_db()
    cached = {"id": session.conversation_id, "object": "conversation"}
    sandbox.fault("error_before", operation="create_conversation", status=200, body=cached, times=2)
    other = operations.create_session()
    write = append(other, 1, prefix="other")
    operations.deliver(other.pk, budget=0)

    held = operations.get_write(write.pk)
    assert (held.state, held.hold_code, held.error_code) == (WriteState.SENDING, "unreachable", "conversation_taken")
    assert deliver_until_settled(write).state == WriteState.SAVED
    assert (remote_texts(sandbox, session), remote_texts(sandbox, other)) == (["m0"], ["other0"])


def test_taking_over_more_than_a_packet_holds(session):
    items = [{"role": "user", "content": "x" * 60_000} for _ in range(400)]
    write = operations.take_over_append(session.pk, items, operations.Place(""), idempotency_key="large")
    assert write.chunks.count() == 20


def reading(read, session, results) -> threading.Thread:
    def run() -> None:
        try:
            results.append(read(session.pk))
        except Exception as error:  # noqa: BLE001 - compared below
            results.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


READERS = {
    "a page": (lambda pk: operations.get_items(pk)["data"], []),
    "the latest": (lambda pk: operations.get_latest_items(pk, 5)["data"], []),
    "the comparison": (lambda pk: operations.verify_session(pk).checked, 0),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("recorded", [True, False], ids=["clear recorded", "clear in flight"])
def test_reading_while_a_clear_takes_the_conversation_away_finds_nothing(sandbox, session, name, recorded, quick):
    quick["REQUEST_TIMEOUT"] = 5.0
    deliver_until_settled(append(session, 2))
    session.refresh_from_db()
    conversation_id = session.conversation_id
    sandbox.fault("hang_before", operation="list_items", seconds=0.6)
    if not recorded:
        sandbox.fault("hang_after", operation="delete_conversation", seconds=1.2)
    read, expected = READERS[name]
    results = []
    thread = reading(read, session, results)
    eventually(lambda: [row for row in sandbox.requests(conversation_id) if row["method"] == "GET"])
    deliver_until_settled(operations.clear_session(session.pk))
    thread.join()

    assert results == [expected]
    assert ConversationSession.objects.get(pk=session.pk).generation == 1
