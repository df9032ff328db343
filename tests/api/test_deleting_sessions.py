"""Deleting a session: its conversation goes, its rows stay."""

from __future__ import annotations

import pytest

from convsessions import operations

from .conftest import A, code_of, create, message, person
from .test_waiting import worker

pytestmark = pytest.mark.django_db(transaction=True)


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
