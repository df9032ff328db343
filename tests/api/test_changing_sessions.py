"""Changing the key and the metadata of a session, adopting a conversation, and deleting."""

from __future__ import annotations

import threading

import pytest
from django.db import connections
from rest_framework.test import APIClient

from convsessions import operations
from convsessions.api.access import SessionAccess
from convsessions.models import ConversationSession, WriteIntent

from .conftest import code_of, message, person, texts
from .test_waiting import worker

pytestmark = pytest.mark.django_db(transaction=True)

A, B = {"topic": "a"}, {"topic": "b"}


def patch(client, session, fields, **headers):
    return client.patch(f"/api/sessions/{session.pk}/", fields, format="json", headers=headers)


def remote_metadata(sandbox, session) -> dict:
    session.refresh_from_db()
    return sandbox.conversation(session.conversation_id)["metadata"]


# -- the key -----------------------------------------------------------------------------------------------------


def test_a_key_changes_at_once(owner, session):
    response = patch(owner, session, {"key": "chat-2"})

    assert (response.status_code, response.json()["key"], response.json()["write"]) == (200, "chat-2", None)
    assert operations.get_session(owner=owner.user, key="chat-2") == session
    assert patch(owner, session, {"key": None}).json()["key"] is None
    assert operations.create_session(owner=owner.user, key="chat-2").key == "chat-2"


def test_a_key_that_another_session_has_is_refused_and_nothing_is_changed(owner, session):
    operations.create_session(owner=owner.user, key="taken")

    assert code_of(patch(owner, session, {"key": "taken", "metadata": A})) == (409, "key_taken")

    session.refresh_from_db()
    assert (session.key, session.metadata, session.writes.count()) == (None, {}, 0)


def test_ones_own_key_is_not_taken(owner):
    session = operations.create_session(owner=owner.user, key="mine")

    assert patch(owner, session, {"key": "mine"}).status_code == 200


def test_a_patch_of_nothing_changes_nothing(owner, session):
    before = owner.get(f"/api/sessions/{session.pk}/")

    after = patch(owner, session, {})

    assert (after.status_code, after["ETag"]) == (200, before["ETag"])
    assert after.json() == before.json() | {"write": None}


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"key": ""}, "invalid", "key"),
        ({"metadata": []}, "invalid", "metadata"),
        ({"metadata": {"a": 1}}, "invalid", "metadata.a"),
        ({"conversation_id": "conv_1"}, "unknown_field", "conversation_id"),
    ],
)
def test_a_bad_change_is_refused_with_the_path_of_the_field(owner, session, fields, code, field):
    response = patch(owner, session, fields)

    assert (code_of(response), response.json()["field"]) == ((422, code), field)
    assert not WriteIntent.objects.exists()


# -- the metadata ------------------------------------------------------------------------------------------------


def test_without_a_conversation_metadata_changes_the_row_at_once(owner, session, sandbox):
    response = patch(owner, session, {"metadata": A})

    assert (response.status_code, response.json()["metadata"]) == (200, A)
    assert (response.json()["write"]["kind"], response.json()["write"]["state"]) == ("metadata", "saved")
    operations.append_items(session.pk, [message()])
    operations.deliver(session.pk)
    assert remote_metadata(sandbox, session) == A


def test_metadata_goes_to_the_conversation_through_the_journal(owner, saved, sandbox):
    response = patch(owner, saved, {"metadata": A})

    write = response.json()["write"]
    assert (response.status_code, response.json()["metadata"], write["metadata"]) == (202, {}, A)
    assert response["Location"].endswith(f"/api/writes/{write['id']}/")
    assert response["Retry-After"] == "1"
    operations.deliver(saved.pk)
    assert remote_metadata(sandbox, saved) == A
    assert owner.get(f"/api/sessions/{saved.pk}/").json()["metadata"] == A


def test_metadata_can_be_waited_for(owner, saved):
    with worker(saved.pk):
        response = patch(owner, saved, {"metadata": A}, Prefer="wait=10")

    assert (response.status_code, response.json()["metadata"]) == (200, A)
    assert response["Preference-Applied"] == "wait=10"


def test_metadata_changes_in_the_order_of_recording(owner, saved, sandbox):
    for fields in (A, B):
        patch(owner, saved, {"metadata": fields})
    operations.append_items(saved.pk, [message("4")])
    operations.deliver(saved.pk)

    assert remote_metadata(sandbox, saved) == B
    assert texts(sandbox.items(saved.conversation_id)) == ["1", "2", "3", "4"]
    changes = [row for row in sandbox.requests() if row["method"] == "POST" and row["path"].count("/") == 3]
    assert len(changes) == 2


def test_metadata_can_be_emptied(owner, session, sandbox):
    patch(owner, session, {"metadata": A})
    operations.append_items(session.pk, [message()])
    patch(owner, session, {"metadata": None})
    operations.deliver(session.pk)

    assert remote_metadata(sandbox, session) == {}


@pytest.mark.parametrize("fault", ["lost_after", "lost_before", "error_after", "error_before", "html"])
def test_an_unknown_outcome_of_a_change_is_repeated(owner, saved, sandbox, fault):
    sandbox.fault(fault, operation="update_conversation", times=2)
    write = patch(owner, saved, {"metadata": A}).json()["write"]

    operations.deliver(saved.pk)

    assert owner.get(f"/api/writes/{write['id']}/").json()["state"] == "saved"
    assert remote_metadata(sandbox, saved) == A


def test_a_refused_change_leaves_the_row_as_it_was(owner, saved, sandbox):
    sandbox.fault("error_before", operation="update_conversation", status=400, code="bad", times=1)
    patch(owner, saved, {"metadata": A})
    operations.deliver(saved.pk)

    body = owner.get(f"/api/sessions/{saved.pk}/").json()
    assert (body["metadata"], body["state"]) == ({}, "idle")
    assert saved.writes.latest("sequence").state == "refused"


def test_a_change_that_was_not_begun_can_be_cancelled(owner, saved, sandbox):
    write = patch(owner, saved, {"metadata": A}).json()["write"]

    assert owner.post(f"/api/writes/{write['id']}/cancel/").json()["state"] == "cancelled"
    operations.deliver(saved.pk)
    assert remote_metadata(sandbox, saved) == {}


def test_a_held_change_of_which_nothing_was_applied_can_be_cancelled(owner, saved, sandbox):
    sandbox.fault("bad_key", operation="update_conversation")
    write = patch(owner, saved, {"metadata": A}).json()["write"]
    operations.deliver(saved.pk, budget=0.1)

    owner.post(f"/api/writes/{write['id']}/cancel/")
    operations.deliver(saved.pk)

    assert owner.get(f"/api/writes/{write['id']}/").json()["state"] == "cancelled"


def test_a_change_that_may_have_been_applied_is_carried_through_though_cancelled(owner, saved, sandbox):
    sandbox.fault("lost_after", operation="update_conversation", times=1)
    write = patch(owner, saved, {"metadata": A}).json()["write"]
    operations.deliver(saved.pk, budget=0)

    owner.post(f"/api/writes/{write['id']}/cancel/")
    operations.deliver(saved.pk)

    assert owner.get(f"/api/writes/{write['id']}/").json()["state"] == "saved"
    assert remote_metadata(sandbox, saved) == A


def test_metadata_before_a_clear_is_for_the_next_conversation(owner, saved, sandbox):
    write = patch(owner, saved, {"metadata": A}).json()["write"]
    owner.post(f"/api/sessions/{saved.pk}/clear/")
    operations.append_items(saved.pk, [message("new")])
    operations.deliver(saved.pk)

    assert owner.get(f"/api/writes/{write['id']}/").json()["cancel_cause"] == "clear"
    assert remote_metadata(sandbox, saved) == A
    assert texts(sandbox.items(saved.conversation_id)) == ["new"]


def test_metadata_after_a_clear_is_for_the_next_conversation(owner, saved, sandbox):
    before = saved.conversation_id
    owner.post(f"/api/sessions/{saved.pk}/clear/")
    patch(owner, saved, {"metadata": A})
    operations.append_items(saved.pk, [message("new")])
    operations.deliver(saved.pk)

    assert remote_metadata(sandbox, saved) == A
    assert sandbox.conversation(before)["metadata"] == {}


def test_a_change_of_metadata_takes_an_idempotency_key(owner, saved):
    first = patch(owner, saved, {"metadata": A, "key": "k"}, **{"Idempotency-Key": "1"})
    patch(owner, saved, {"key": "later"})
    second = patch(owner, saved, {"metadata": A, "key": "k"}, **{"Idempotency-Key": "1"})
    other = patch(owner, saved, {"metadata": A, "key": "x"}, **{"Idempotency-Key": "1"})

    assert second["Idempotent-Replayed"] == "true"
    assert second.json()["write"] == first.json()["write"]
    assert second.json()["key"] == "later"
    assert code_of(other) == (422, "idempotency_conflict")


def test_changing_the_session_of_another_takes_a_permission(session):
    seeing, changing = person("seeing", "view_conversationsession"), person("changing", "change_conversationsession")

    assert code_of(patch(seeing, session, {"key": "k"})) == (403, "permission_denied")
    assert code_of(seeing.delete(f"/api/sessions/{session.pk}/")) == (403, "permission_denied")
    assert patch(changing, session, {"key": "k"}).status_code == 200
    assert operations.get_session(owner=session.owner, key="k") == session


# -- creating ----------------------------------------------------------------------------------------------------


def create(client, fields, **headers):
    return client.post("/api/sessions/", fields, format="json", headers=headers)


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


# -- deleting ----------------------------------------------------------------------------------------------------


def test_deleting_clears_remotely_and_keeps_the_trail(owner, saved, sandbox):
    conversation = saved.conversation_id
    response = owner.delete(f"/api/sessions/{saved.pk}/")

    assert (response.status_code, response.json()["kind"], response["Retry-After"]) == (202, "clear", "1")
    operations.deliver(saved.pk)
    assert sandbox.conversation(conversation)["deleted"]
    assert owner.get(response["Location"]).json()["state"] == "saved"
    shown = owner.get(f"/api/sessions/{saved.pk}/").json()
    assert shown["deleted_at"] is not None
    assert (shown["conversation_id"], shown["generation"]) == (None, 1)
    assert len(owner.get(f"/api/sessions/{saved.pk}/writes/").json()["results"]) == 2


def test_deleting_can_be_waited_for(owner, saved):
    with worker(saved.pk):
        response = owner.delete(f"/api/sessions/{saved.pk}/", headers={"Prefer": "wait=10"})

    assert (response.status_code, response.json()["state"]) == (200, "saved")


def test_a_deleted_session_takes_no_more_writes(owner, session):
    owner.delete(f"/api/sessions/{session.pk}/")
    path = f"/api/sessions/{session.pk}/"

    responses = [
        owner.post(f"{path}items/", {"items": [message()]}, format="json"),
        owner.post(f"{path}pop/"),
        owner.post(f"{path}clear/"),
        owner.patch(path, {"key": "k"}, format="json"),
        owner.patch(path, {"metadata": A}, format="json"),
        owner.post(f"/api/writes/{session.writes.get().pk}/cancel/"),
    ]

    assert [code_of(response) for response in responses] == [(409, "session_deleted")] * 6
    assert session.writes.get().state == "pending"


def test_a_session_is_deleted_once_however_often_one_asks(owner, session):
    first, second = (owner.delete(f"/api/sessions/{session.pk}/") for _ in range(2))

    assert second["Idempotent-Replayed"] == "true"
    assert second.json() == first.json()
    assert session.writes.count() == 1


def test_an_operator_can_drop_a_deletion_that_cannot_be_done(session, owner):
    write = owner.delete(f"/api/sessions/{session.pk}/").json()
    client = person("somebody", "view_conversationsession", "cancel_writeintent")

    assert client.post(f"/api/writes/{write['id']}/cancel/").json()["cancel_cause"] == "operator"


def test_a_replay_from_before_the_deletion_is_answered(owner, session):
    path, headers = f"/api/sessions/{session.pk}/items/", {"Idempotency-Key": "1"}
    first = owner.post(path, {"items": [message()]}, format="json", headers=headers)
    owner.delete(f"/api/sessions/{session.pk}/")

    replay = owner.post(path, {"items": [message()]}, format="json", headers=headers)

    assert (replay.status_code, replay.json()["id"], replay.json()["state"]) == (200, first.json()["id"], "cancelled")


def test_the_key_of_a_deleted_session_is_free_again(owner):
    session = operations.create_session(owner=owner.user, key="k")
    owner.delete(f"/api/sessions/{session.pk}/")

    response = create(owner, {"key": "k"})

    assert response.status_code == 201
    assert owner.get(f"/api/sessions/{session.pk}/").json()["key"] == "k"


def test_deleted_sessions_are_listed_only_on_demand(owner, session):
    kept = operations.create_session(owner=owner.user)
    owner.delete(f"/api/sessions/{session.pk}/")

    listed = {
        query: [row["id"] for row in owner.get(f"/api/sessions/{query}").json()["results"]]
        for query in ("", "?deleted=false", "?deleted=true")
    }

    assert listed == {"": [str(kept.pk)], "?deleted=false": [str(kept.pk)], "?deleted=true": [str(session.pk)]}


def test_what_was_queued_goes_with_the_session(owner, ambiguous, sandbox):
    operations.append_items(ambiguous.session_id, [message("queued")])

    owner.delete(f"/api/sessions/{ambiguous.session_id}/")
    operations.deliver(ambiguous.session_id)

    states = list(ambiguous.session.writes.order_by("sequence").values_list("kind", "state"))
    assert states == [("append", "cancelled"), ("append", "cancelled"), ("clear", "saved")]
