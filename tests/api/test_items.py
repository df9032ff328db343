"""Reading the items of a session from the remote."""

from __future__ import annotations

import pytest

from convsessions import operations

from .conftest import code_of, message, person, texts

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_session_without_a_conversation_has_an_empty_page(owner, session):
    response = owner.get(f"/api/sessions/{session.pk}/items/")

    assert response.json() == {
        "object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False,
        "open_writes": 0, "ambiguous_writes": 0,
    }  # fmt: skip
    assert response["Convsessions-Open-Writes"] == response["Convsessions-Ambiguous-Writes"] == "0"


def test_items_come_in_the_openai_list_shape(owner, saved, sandbox):
    stored = sandbox.items(saved.conversation_id)

    response = owner.get(f"/api/sessions/{saved.pk}/items/")

    ids = [item["id"] for item in stored]
    assert response.json() == {
        "object": "list", "data": stored, "first_id": ids[0], "last_id": ids[-1], "has_more": False,
        "open_writes": 0, "ambiguous_writes": 0,
    }  # fmt: skip


def test_items_page_by_limit_order_and_cursor(owner, saved):
    path = f"/api/sessions/{saved.pk}/items/"

    first = owner.get(path, {"limit": 2}).json()
    second = owner.get(path, {"limit": 2, "after": first["last_id"]}).json()
    newest = owner.get(path, {"limit": 1, "order": "desc"}).json()

    assert (texts(first["data"]), first["has_more"]) == (["1", "2"], True)
    assert (texts(second["data"]), second["has_more"]) == (["3"], False)
    assert texts(newest["data"]) == ["3"]


def test_a_header_tells_how_many_writes_the_list_may_be_without(owner, saved):
    operations.append_items(saved.pk, [message("4")])
    operations.pop_item(saved.pk)

    response = owner.get(f"/api/sessions/{saved.pk}/items/")

    assert response["Convsessions-Open-Writes"] == "2"
    assert (response.json()["open_writes"], response.json()["ambiguous_writes"]) == (2, 0)
    assert texts(response.json()["data"]) == ["1", "2", "3"]


def test_an_ambiguous_write_is_told_as_such(owner, ambiguous):
    response = owner.get(f"/api/sessions/{ambiguous.session_id}/items/")

    assert (response.json()["open_writes"], response.json()["ambiguous_writes"]) == (1, 1)
    assert response["Convsessions-Ambiguous-Writes"] == "1"


@pytest.mark.parametrize(
    ("latest", "found", "has_more"),
    [(1, ["3"], True), (2, ["2", "3"], True), (3, ["1", "2", "3"], False), (9, ["1", "2", "3"], False)],
)
def test_the_latest_items_come_in_their_order(owner, saved, latest, found, has_more):
    body = owner.get(f"/api/sessions/{saved.pk}/items/", {"latest": latest}).json()

    assert (texts(body["data"]), body["has_more"]) == (found, has_more)
    assert (body["first_id"], body["last_id"]) == (body["data"][0]["id"], body["data"][-1]["id"])


@pytest.mark.parametrize("latest", [99, 100, 101, 200, 249, 250, 10_000])
def test_the_latest_items_are_read_over_pages(owner, session, sandbox, latest):
    operations.append_items(session.pk, [message(str(number)) for number in range(250)])
    operations.deliver(session.pk)
    before = len(sandbox.requests())

    body = owner.get(f"/api/sessions/{session.pk}/items/", {"latest": latest}).json()

    wanted = min(latest, 250)
    assert texts(body["data"]) == [str(number) for number in range(250 - wanted, 250)]
    assert body["has_more"] == (latest < 250)
    assert len(sandbox.requests()) - before == -(-min(latest + 1, 250) // 100)


def test_the_latest_items_of_no_conversation_are_none(owner, session):
    assert owner.get(f"/api/sessions/{session.pk}/items/", {"latest": 5}).json()["data"] == []


def test_a_history_that_repeats_itself_is_not_read_for_ever(owner, session, sandbox):
    operations.append_items(session.pk, [message(str(number)) for number in range(101)])
    operations.deliver(session.pk)
    sandbox.fault("stuck_cursor", times=None)

    response = owner.get(f"/api/sessions/{session.pk}/items/", {"latest": 1000})

    assert code_of(response) == (502, "upstream_failed")


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ({"limit": "0"}, "limit", "invalid"),
        ({"limit": "101"}, "limit", "invalid"),
        ({"limit": "ten"}, "limit", "invalid"),
        ({"limit": "-1"}, "limit", "invalid"),
        ({"limit": "٣"}, "limit", "invalid"),
        ({"limit": "1" * 5000}, "limit", "invalid"),
        ({"latest": "0"}, "latest", "invalid"),
        ({"latest": "10001"}, "latest", "invalid"),
        ({"latest": "x"}, "latest", "invalid"),
        ({"latest": "1", "after": "msg_1"}, "after", "invalid"),
        ({"latest": "1", "limit": "1"}, "limit", "invalid"),
        ({"latest": "1", "order": "asc"}, "order", "invalid"),
        ({"order": "up"}, "order", "invalid"),
        ({"after": ""}, "after", "invalid"),
        ({"after": "\x00"}, "after", "invalid"),
        ({"after": "msg_unknown"}, "after", "item_not_found"),
    ],
)
def test_a_wrong_parameter_is_named(owner, saved, query, field, code):
    response = owner.get(f"/api/sessions/{saved.pk}/items/", query)

    assert code_of(response) == (422, code)
    assert response.json()["field"] == field


def test_the_content_of_others_takes_a_permission_of_its_own(saved):
    seeing = person("seeing", "view_conversationsession")
    reading = person("reading", "view_conversationsession", "view_payload")

    assert code_of(seeing.get(f"/api/sessions/{saved.pk}/items/")) == (403, "permission_denied")
    assert texts(reading.get(f"/api/sessions/{saved.pk}/items/").json()["data"]) == ["1", "2", "3"]


def test_an_unpaired_surrogate_in_the_remote_history_can_be_shown(owner, session, sandbox, monkeypatch):
    item = {"id": "msg_1", "content": "\ud800"}
    page = {"object": "list", "data": [item], "first_id": "msg_1", "last_id": "msg_1", "has_more": False}
    monkeypatch.setattr(operations, "get_items", lambda *args, **kwargs: page)

    response = owner.get(f"/api/sessions/{session.pk}/items/")

    assert b'"data":[{"id":"msg_1","content":"\\ud800"}]' in response.content
