"""Content that the site's keys cannot decrypt: a problem with a code of its own, and no crash."""

from __future__ import annotations

import pytest

from convsessions import operations

from .conftest import code_of, message

pytestmark = pytest.mark.django_db(transaction=True)

UNREADABLE = (503, "content_unreadable")


@pytest.fixture(autouse=True)
def lose(keys):
    """Take the key away for another."""
    return keys.lose


def test_a_held_write_is_told_like_any_other(owner, session, sandbox, lose):
    write = operations.append_items(session.pk, [message()])
    lose()
    operations.deliver(session.pk)
    body = owner.get(f"/api/writes/{write.pk}/").json()
    assert (body["state"], body["hold_code"], body["needs_attention"]) == ("pending", "content_unreadable", True)
    assert owner.get(f"/api/sessions/{session.pk}/items/").json()["open_writes"] == 1
    assert (
        owner.get(f"/api/sessions/{session.pk}/writes/?needs_attention=true").json()["results"][0]["id"] == body["id"]
    )
    assert owner.post(f"/api/writes/{write.pk}/cancel/").json()["state"] == "cancelled"


def test_a_popped_item_that_cannot_be_read_is_not_taken_for_none(owner, saved, sandbox, lose):
    pop = operations.pop_item(saved.pk)
    operations.deliver(saved.pk)
    lose()
    assert code_of(owner.get(f"/api/writes/{pop.pk}/")) == UNREADABLE
    assert owner.get(f"/api/sessions/{saved.pk}/writes/").status_code == 200


def test_what_cannot_be_encrypted_is_not_recorded(owner, session, quick):
    quick["CIPHER_KEYS"] = []
    response = owner.post(f"/api/sessions/{session.pk}/items/", {"items": [message("zebra")]}, format="json")
    assert code_of(response) == UNREADABLE
    assert "zebra" not in response.content.decode()
    response = owner.post("/api/sessions/", {"items": [message("zebra")]}, format="json")
    assert code_of(response) == UNREADABLE
    assert owner.get(f"/api/sessions/{session.pk}/writes/").json()["results"] == []


def test_nothing_is_compared(owner, saved, lose):
    lose()
    assert code_of(owner.post(f"/api/sessions/{saved.pk}/verify/")) == UNREADABLE


def test_an_ambiguous_write_can_be_abandoned_and_nothing_else(operator, ambiguous, lose):
    lose()
    path = f"/api/writes/{ambiguous.pk}/resolve/"
    assert code_of(operator.get(path)) == UNREADABLE
    decision = {"reason": "so", "evidence": "?"}
    assert code_of(operator.post(path, {**decision, "resolution": "accept"}, format="json")) == UNREADABLE
    done = operator.post(path, {**decision, "resolution": "abandon"}, format="json")
    assert (done.status_code, done.json()["state"]) == (200, "cancelled")
