"""Creating, listing and reading sessions."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.models import ConversationSession

from .conftest import code_of, message

pytestmark = pytest.mark.django_db(transaction=True)


def test_creating_a_session_answers_201_with_its_location(owner):
    response = owner.post("/api/sessions/", {"key": "chat-1", "metadata": {"topic": "tests"}}, format="json")

    session = ConversationSession.objects.get()
    assert response.status_code == 201
    assert response["Location"] == f"http://testserver/api/sessions/{session.pk}/"
    assert response.json() == {
        "id": str(session.pk),
        "owner": str(owner.user.pk),
        "key": "chat-1",
        "conversation_id": None,
        "generation": 0,
        "metadata": {"topic": "tests"},
        "state": "idle",
        "open_writes": 0,
        "needs_attention": False,
        "created_at": response.json()["created_at"],
        "updated_at": response.json()["updated_at"],
        "deleted_at": None,
        "write": None,
    }
    again = owner.get(response["Location"])
    assert again.json() | {"write": None} == response.json()
    assert again["ETag"] == response["ETag"]


def test_a_session_needs_neither_key_nor_body(owner):
    assert owner.post("/api/sessions/").json()["key"] is None


def test_a_key_is_taken_once_an_owner(owner, stranger):
    statuses = [client.post("/api/sessions/", {"key": "k"}, format="json") for client in (owner, stranger, owner)]

    assert [response.status_code for response in statuses] == [201, 201, 409]
    assert code_of(statuses[2]) == (409, "key_taken")


def test_a_session_tells_how_many_of_its_writes_are_open(owner, session):
    operations.append_items(session.pk, [message()])
    operations.append_items(session.pk, [])

    assert owner.get(f"/api/sessions/{session.pk}/").json()["open_writes"] == 1
    assert owner.get("/api/sessions/").json()["results"][0]["open_writes"] == 1


def test_a_list_shows_the_newest_first(owner):
    created = [owner.post("/api/sessions/").json()["id"] for _ in range(3)]

    body = owner.get("/api/sessions/").json()

    assert [row["id"] for row in body["results"]] == created[::-1]
    assert (body["next"], body["previous"]) == (None, None)


def test_a_session_without_a_conversation_is_intact(owner, session):
    response = owner.post(f"/api/sessions/{session.pk}/verify/")

    assert (response.status_code, response.json()) == (
        200,
        {"intact": True, "checked": 0, "purged": 0, "missing": [], "altered": [], "reordered": [], "foreign": []},
    )


def test_verifying_names_what_differs(owner, saved, sandbox):
    [foreign] = sandbox.append_foreign(saved.conversation_id, [message("foreign")])

    body = owner.post(f"/api/sessions/{saved.pk}/verify/").json()

    assert body == {
        "intact": True, "checked": 4, "purged": 0, "missing": [], "altered": [], "reordered": [],
        "foreign": [foreign["id"]],
    }  # fmt: skip
