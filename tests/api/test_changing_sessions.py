"""Changing the key and the metadata of a session."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.models import WriteIntent

from .conftest import A, B, code_of, message, person, remote_metadata, texts
from .test_waiting import worker

pytestmark = pytest.mark.django_db(transaction=True)


def patch(client, session, fields, **headers):
    return client.patch(f"/api/sessions/{session.pk}/", fields, format="json", headers=headers)


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
