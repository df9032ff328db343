"""Sessions that begin with items, metadata or a conversation that exists."""

from __future__ import annotations

import threading

import pytest
from django.db import connections
from rest_framework.test import APIClient

from convsessions import operations
from convsessions.api.access import SessionAccess
from convsessions.models import ConversationSession, WriteIntent

from .conftest import A, B, code_of, create, message, remote_metadata, texts

pytestmark = pytest.mark.django_db(transaction=True)


# -- creating ----------------------------------------------------------------------------------------------------


@pytest.fixture
def conversation(sandbox) -> str:
    """A conversation that nobody here knows, with two items and metadata."""
    other = operations.create_session(metadata=B)
    operations.append_items(other.pk, [message("1"), message("2")])
    operations.deliver(other.pk)
    other.refresh_from_db()
    WriteIntent.objects.filter(session=other).first().requests.all().delete()
    for write in other.writes.all():
        write.chunks.all().delete()
        write.delete()
    other.delete()
    return other.conversation_id


def test_a_session_adopts_a_conversation_that_exists(owner, conversation, sandbox):
    response = create(owner, {"conversation_id": conversation})

    session = ConversationSession.objects.get()
    assert (response.status_code, response.json()["conversation_id"]) == (201, conversation)
    assert (response.json()["metadata"], response.json()["write"]) == (B, None)
    operations.append_items(session.pk, [message("3")])
    operations.deliver(session.pk)
    assert texts(owner.get(f"/api/sessions/{session.pk}/items/").json()["data"]) == ["1", "2", "3"]


def test_metadata_and_items_of_an_adopted_conversation_are_written_to_it(owner, conversation, sandbox):
    response = create(owner, {"conversation_id": conversation, "metadata": A, "items": [message("3")]})

    session = ConversationSession.objects.get()
    assert (response.status_code, response.json()["write"]["kind"]) == (201, "append")
    operations.deliver(session.pk)
    assert remote_metadata(sandbox, session) == A
    assert texts(sandbox.items(conversation)) == ["1", "2", "3"]


def test_a_conversation_that_does_not_exist_is_no_field_value(owner, sandbox):
    response = create(owner, {"conversation_id": "conv_unknown", "items": [message()]})

    assert code_of(response) == (422, "conversation_not_found")
    assert response.json()["field"] == "conversation_id"
    assert not ConversationSession.objects.exists()


def test_a_conversation_that_another_session_has_is_taken(owner, stranger, saved):
    assert code_of(create(stranger, {"conversation_id": saved.conversation_id})) == (409, "conversation_taken")
    assert ConversationSession.objects.get() == saved


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ({"kind": "error_before", "status": 500}, (502, "upstream_failed")),
        ({"kind": "rate_limited"}, (503, "upstream_unavailable")),
        ({"kind": "hang_before", "seconds": 2.0}, (504, "upstream_timeout")),
        ({"kind": "html_before"}, (502, "upstream_failed")),
    ],
    ids=str,
)
def test_a_conversation_that_cannot_be_looked_for_is_a_gateway_error(owner, conversation, sandbox, fault, problem):
    sandbox.fault(operation="retrieve_conversation", times=None, **fault)

    assert code_of(create(owner, {"conversation_id": conversation})) == problem
    assert not ConversationSession.objects.exists()


class NobodyAdopts(SessionAccess):
    def may_adopt(self, conversation_id):
        return False


def test_the_access_class_says_who_may_adopt(owner, quick):
    quick["ACCESS_CLASS"] = f"{__name__}.NobodyAdopts"

    assert code_of(create(owner, {"conversation_id": "conv_1"})) == (403, "permission_denied")
    assert create(owner, {}).status_code == 201


def test_a_session_begins_with_its_first_items(owner, sandbox):
    response = create(owner, {"key": "k", "items": [message("1"), message("2")]})

    session = ConversationSession.objects.get()
    write = response.json()["write"]
    assert response["Location"].endswith(f"/api/sessions/{session.pk}/")
    assert (write["kind"], write["state"], write["items_total"]) == ("append", "pending", 2)
    assert (response.json()["open_writes"], response["Retry-After"]) == (1, "1")
    operations.deliver(session.pk)
    session.refresh_from_db()
    assert texts(sandbox.items(session.conversation_id)) == ["1", "2"]


def test_a_session_whose_key_is_taken_records_no_items_either(owner):
    operations.create_session(owner=owner.user, key="k")

    assert code_of(create(owner, {"key": "k", "items": [message()]})) == (409, "key_taken")
    assert not WriteIntent.objects.exists()


def test_creating_takes_an_idempotency_key(owner, stranger):
    fields, header = {"metadata": A, "items": [message()]}, {"Idempotency-Key": "1"}

    first, second = create(owner, fields, **header), create(owner, fields, **header)
    of_another = create(stranger, fields, **header)
    another_body = create(owner, {"metadata": B}, **header)

    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    assert (first.get("Idempotent-Replayed"), second.get("Idempotent-Replayed")) == (None, "true")
    assert of_another.json()["id"] != first.json()["id"]
    assert code_of(another_body) == (422, "idempotency_conflict")
    assert (ConversationSession.objects.count(), WriteIntent.objects.count()) == (2, 2)


def test_creating_with_one_key_from_several_clients_at_once_is_one_session(owner):
    barrier, responses = threading.Barrier(4), []

    def request() -> None:
        client = APIClient()
        client.force_authenticate(owner.user)
        barrier.wait()
        responses.append(create(client, {"items": [message()]}, **{"Idempotency-Key": "1"}))
        connections.close_all()

    threads = [threading.Thread(target=request) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [response.status_code for response in responses] == [201] * 4
    assert {response.json()["id"] for response in responses} == {str(ConversationSession.objects.get().pk)}
    assert WriteIntent.objects.count() == 1
