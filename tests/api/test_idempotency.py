"""Idempotency-Key: the same request, however often it is sent, is one write."""

from __future__ import annotations

import threading

import pytest
from django.db import connections
from rest_framework.test import APIClient

from convsessions import operations
from convsessions.models import WriteIntent

from .conftest import code_of, message

pytestmark = pytest.mark.django_db(transaction=True)


def append(client, session, text="Hello", key="key-1"):
    path, headers = f"/api/sessions/{session.pk}/items/", {"Idempotency-Key": key}
    return client.post(path, {"items": [message(text)]}, format="json", headers=headers)


def test_the_same_request_again_answers_with_the_same_write(owner, session):
    first, second = append(owner, session), append(owner, session)

    assert (first.status_code, second.status_code) == (202, 202)
    assert "Idempotent-Replayed" not in first
    assert second["Idempotent-Replayed"] == "true"
    assert second["Location"] == first["Location"]
    assert second.json() == first.json()
    assert WriteIntent.objects.count() == 1


def test_a_replay_of_a_saved_write_answers_as_if_one_had_waited(owner, session, sandbox):
    append(owner, session)
    operations.deliver(session.pk)

    replay = append(owner, session)

    assert (replay.status_code, replay.json()["state"]) == (201, "saved")


def test_another_body_under_the_same_key_is_refused(owner, session):
    append(owner, session)

    responses = [
        append(owner, session, "Bye"),
        owner.post(f"/api/sessions/{session.pk}/pop/", headers={"Idempotency-Key": "key-1"}),
        owner.post(f"/api/sessions/{session.pk}/clear/", headers={"Idempotency-Key": "key-1"}),
    ]

    assert [code_of(response) for response in responses] == [(422, "idempotency_conflict")] * 3
    assert WriteIntent.objects.count() == 1


@pytest.mark.parametrize("verb", ["pop", "clear"])
def test_pop_and_clear_take_a_key_too(owner, session, verb):
    path, headers = f"/api/sessions/{session.pk}/{verb}/", {"Idempotency-Key": "key-1"}

    first, second = owner.post(path, headers=headers), owner.post(path, headers=headers)

    assert second["Idempotent-Replayed"] == "true"
    assert second.json() == first.json()
    assert WriteIntent.objects.count() == 1


def test_keys_belong_to_their_session(owner, session):
    other = operations.create_session(owner=owner.user)

    assert append(owner, session).json()["id"] != append(owner, other).json()["id"]


def test_a_replay_of_an_ambiguous_write_returns_it_and_sends_nothing(owner, session, sandbox):
    sandbox.fault("rewritten", times=1)
    first = append(owner, session)
    operations.deliver(session.pk)
    sent = len(sandbox.requests())

    replay = append(owner, session)
    operations.deliver(session.pk)

    assert (replay.status_code, replay.json()["id"], replay.json()["state"]) == (202, first.json()["id"], "ambiguous")
    assert len(sandbox.requests()) == sent


def test_a_replayed_pop_is_answered_though_the_session_is_blocked_since(owner, session, sandbox):
    sandbox.fault("rewritten", times=1)
    operations.append_items(session.pk, [message()])
    path, headers = f"/api/sessions/{session.pk}/pop/", {"Idempotency-Key": "pop-1"}
    first = owner.post(path, headers=headers)
    operations.deliver(session.pk)

    replay, new = owner.post(path, headers=headers), owner.post(path)

    assert (replay.status_code, replay.json()["id"]) == (202, first.json()["id"])
    assert code_of(new) == (409, "session_blocked")


@pytest.mark.parametrize("key", ["", "k" * 256, "a\tb"])
def test_a_key_that_cannot_be_kept_is_refused(owner, session, key):
    response = append(owner, session, key=key)

    assert code_of(response) == (422, "invalid")
    assert response.json()["field"] == "idempotency_key"
    assert not WriteIntent.objects.exists()


def test_the_same_key_from_two_clients_at_once_is_one_write(owner, session):
    barrier = threading.Barrier(2)
    responses = []

    def request() -> None:
        client = APIClient()
        client.force_authenticate(owner.user)
        barrier.wait()
        responses.append(append(client, session))
        connections.close_all()

    threads = [threading.Thread(target=request) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert WriteIntent.objects.count() == 1
    assert {response.json()["id"] for response in responses} == {str(WriteIntent.objects.get().pk)}
    assert sorted("Idempotent-Replayed" in response for response in responses) == [False, True]
