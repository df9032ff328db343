"""Recording writes and reading what became of them."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.models import WriteIntent

from .conftest import code_of, message, person, texts

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_append_is_accepted_with_a_place_to_look(owner, session):
    response = owner.post(f"/api/sessions/{session.pk}/items/", {"items": [message()]}, format="json")

    write = WriteIntent.objects.get()
    assert response.status_code == 202
    assert response["Location"] == f"http://testserver/api/writes/{write.pk}/"
    assert response["Retry-After"] == "1"
    assert "Idempotent-Replayed" not in response
    assert "Preference-Applied" not in response
    assert write.author == owner.user
    assert response.json() == {
        "id": str(write.pk),
        "session": str(session.pk),
        "sequence": 1,
        "kind": "append",
        "state": "pending",
        "author": str(owner.user.pk),
        "idempotency_key": None,
        "items_total": 1,
        "items_saved": 0,
        "items_omitted": 0,
        "on_refusal": "stop",
        "erase": False,
        "needs_attention": False,
        "hold_code": "",
        "next_attempt_at": None,
        "failures": 0,
        "error_code": "",
        "error_param": "",
        "cancel_cause": "",
        "resolution": "",
        "created_at": response.json()["created_at"],
        "started_at": None,
        "settled_at": None,
        "payload_purged_at": None,
        "target_id": "",
        "metadata": None,
        "popped": None,
        "half_pairs": [],
        "chunks": [
            {
                "first_item": 0,
                "item_count": 1,
                "state": "pending",
                "attempts": 0,
                "remote_ids": [],
                "error_code": "",
                "error_param": "",
            }
        ],
        "reconciliations": [],
    }
    assert owner.get(response["Location"]).json() == response.json()


def test_a_delivered_append_tells_its_progress(owner, session, sandbox):
    write = operations.append_items(session.pk, [message(str(number)) for number in range(21)])
    operations.deliver(session.pk)

    response = owner.get(f"/api/writes/{write.pk}/")

    session.refresh_from_db()
    ids = [item["id"] for item in sandbox.items(session.conversation_id)]
    body = response.json()
    assert "Retry-After" not in response
    assert (response.status_code, body["state"], body["items_saved"]) == (200, "saved", 21)
    untroubled = {"state": "saved", "attempts": 1, "error_code": "", "error_param": ""}
    assert body["chunks"] == [
        {"first_item": 0, "item_count": 20, "remote_ids": ids[:20], **untroubled},
        {"first_item": 20, "item_count": 1, "remote_ids": ids[20:], **untroubled},
    ]


def test_an_append_of_nothing_is_saved_at_once(owner, session):
    response = owner.post(f"/api/sessions/{session.pk}/items/", {"items": []}, format="json")

    assert (response.status_code, response.json()["state"]) == (201, "saved")
    assert "Retry-After" not in response


def test_a_pop_shows_the_item_that_it_removed(owner, saved, sandbox):
    response = owner.post(f"/api/sessions/{saved.pk}/pop/")
    operations.deliver(saved.pk)

    assert (response.status_code, response.json()["kind"]) == (202, "pop")
    assert texts([owner.get(response["Location"]).json()["popped"]]) == ["3"]
    assert texts(sandbox.items(saved.conversation_id)) == ["1", "2"]


def test_what_was_popped_is_content_and_hidden_from_others(owner, saved):
    seeing = person("seeing", "view_conversationsession")
    location = owner.post(f"/api/sessions/{saved.pk}/pop/")["Location"]
    operations.deliver(saved.pk)

    body = seeing.get(location).json()

    assert (body["state"], body["popped"]) == ("saved", None)


def test_a_pop_behind_an_ambiguous_write_is_refused(owner, ambiguous):
    response = owner.post(f"/api/sessions/{ambiguous.session_id}/pop/")

    assert code_of(response) == (409, "session_blocked")
    assert list(WriteIntent.objects.all()) == [ambiguous]


def test_an_append_behind_an_ambiguous_write_queues(owner, ambiguous):
    response = owner.post(f"/api/sessions/{ambiguous.session_id}/items/", {"items": [message()]}, format="json")

    assert (response.status_code, response.json()["state"]) == (202, "pending")


def test_a_clear_supersedes_even_an_ambiguous_write(owner, ambiguous, sandbox):
    response = owner.post(f"/api/sessions/{ambiguous.session_id}/clear/")
    operations.deliver(ambiguous.session_id)

    assert (response.status_code, response.json()["kind"]) == (202, "clear")
    assert owner.get(response["Location"]).json()["state"] == "saved"
    assert owner.get(f"/api/writes/{ambiguous.pk}/").json()["state"] == "cancelled"
    assert owner.get(f"/api/sessions/{ambiguous.session_id}/").json()["generation"] == 1


def test_a_pending_write_can_be_cancelled(owner, session):
    write = operations.append_items(session.pk, [message()])

    response = owner.post(f"/api/writes/{write.pk}/cancel/")

    assert (response.status_code, response.json()["state"]) == (200, "cancelled")
    assert response.json()["cancel_cause"] == "author"
    assert [chunk["state"] for chunk in response.json()["chunks"]] == ["cancelled"]


def test_who_cancels_the_write_of_another_is_recorded_as_operator(session):
    write = operations.append_items(session.pk, [message()])
    client = person("somebody", "view_conversationsession", "cancel_writeintent")

    assert client.post(f"/api/writes/{write.pk}/cancel/").json()["cancel_cause"] == "operator"


def test_a_settled_write_cannot_be_cancelled(owner, session):
    write = operations.append_items(session.pk, [])

    assert code_of(owner.post(f"/api/writes/{write.pk}/cancel/")) == (409, "illegal_move")


def test_a_refused_write_says_why_and_is_no_201(owner, session, sandbox):
    sandbox.fault("error_before", operation="append_items", status=400, code="bad", param="items[0].content", times=1)
    write = operations.append_items(session.pk, [message()], idempotency_key="k")
    operations.deliver(session.pk)

    replay = owner.post(
        f"/api/sessions/{session.pk}/items/", {"items": [message()]}, format="json", headers={"Idempotency-Key": "k"}
    )

    body = replay.json()
    assert (replay.status_code, body["id"], body["state"]) == (200, str(write.pk), "refused")
    assert (body["error_code"], body["error_param"]) == ("bad", "items[0].content")


def test_a_held_write_says_when_it_is_tried_again(owner, session, sandbox):
    sandbox.fault("bad_key")
    write = operations.append_items(session.pk, [message()])
    operations.deliver(session.pk, budget=0.1)

    body = owner.get(f"/api/writes/{write.pk}/").json()

    assert (body["state"], body["hold_code"], body["needs_attention"]) == ("sending", "bad_key", True)
    assert body["next_attempt_at"] is not None


def test_the_writes_of_a_session_are_listed_newest_first_without_details(owner, session):
    first = operations.append_items(session.pk, [message()])
    second = operations.pop_item(session.pk)
    operations.append_items(operations.create_session(owner=owner.user).pk, [message()])

    rows = owner.get(f"/api/sessions/{session.pk}/writes/").json()["results"]

    assert [row["id"] for row in rows] == [str(second.pk), str(first.pk)]
    assert {"popped", "chunks", "reconciliations"} & set(rows[0]) == set()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"kind": "pop"}, ["pop"]),
        ({"kind": ["pop", "clear"]}, ["clear", "pop"]),
        ({"state": "saved"}, ["append"]),
        ({"state": "pending"}, ["clear"]),
        ({"state": "saved", "kind": "pop"}, []),
        ({"needs_attention": "false"}, ["clear", "pop", "append"]),
        ({"needs_attention": "true"}, []),
        ({"idempotency_key": "of the pop"}, ["pop"]),
        ({"idempotency_key": "\x00"}, []),
        ({"created_after": "2020-01-01T00:00:00Z"}, ["clear", "pop", "append"]),
        ({"created_before": "2020-01-01T00:00:00+01:00"}, []),
    ],
)
def test_the_writes_of_a_session_can_be_filtered(owner, session, query, found):
    operations.append_items(session.pk, [])
    operations.pop_item(session.pk, idempotency_key="of the pop")
    operations.clear_session(session.pk)

    rows = owner.get(f"/api/sessions/{session.pk}/writes/", query).json()["results"]

    assert [row["kind"] for row in rows] == found


@pytest.mark.parametrize(
    "query", [{"kind": "push"}, {"state": "done"}, {"state": ["saved", ""]}, {"needs_attention": "1"}]
)
def test_a_filter_with_an_unknown_value_is_an_error(owner, session, query):
    response = owner.get(f"/api/sessions/{session.pk}/writes/", query)

    assert code_of(response) == (422, "invalid_choice")
    assert response.json()["field"] == next(iter(query))
