"""What reading brings of each item: all of it, whatever it is, and what is hidden by setting."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from convsessions import operations
from convsessions.agents import DjangoConversationsSession
from convsessions.delivery import threads
from convsessions.exceptions import RemoteReadFailed
from convsessions.items.kinds import INCLUDABLE
from tests.histories import append, deliver_until_settled
from tests.remote import wire

pytestmark = pytest.mark.django_db(transaction=True)

IMAGE = {"role": "user", "content": [{"type": "input_image", "detail": "auto", "image_url": "https://example.org/a"}]}

STRANGE = [
    {"id": "msg_1", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "before"}]},
    {"id": "tp_1", "type": "telepathy_call", "waves": [1, 2.5, {"deep": None}]},
    {"id": "msg_2", "type": "message", "role": 7, "content": {"not": "a list"}},
    {"id": "msg_3", "type": ["message"]},
    {"type": "message", "role": "user", "content": "without an id"},
    None,
    "text",
    {"id": "fc_1", "type": "function_call", "arguments": "half a surrogate: \ud83d"},
    {"id": "msg_4", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "behind"}]},
]
"""A page as a server may list it: the client's own types can read neither of these items but the first and the last."""


@pytest.fixture
def strange(monkeypatch):
    """A session whose remote history is STRANGE, on a server that knows nothing else."""
    body = {"object": "list", "data": STRANGE, "first_id": "msg_1", "last_id": "msg_4", "has_more": False}
    with wire.Server(wire.answers(200, json.dumps(body).encode())) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield operations.create_session(conversation_id="conv_1")


def page_of(session):
    return operations.get_items(session.pk)["data"]


def latest_of(session):
    return operations.get_latest_items(session.pk, 100)["data"]


def all_of(session):
    return list(operations.iter_items(session.pk))


READERS = pytest.mark.parametrize("read", [page_of, latest_of, all_of])


@READERS
def test_an_item_that_nobody_can_read_hides_no_others(strange, read):
    items = read(strange)

    assert items == (STRANGE[::-1] if read is latest_of else STRANGE)


def test_the_rest_api_passes_them_on(strange, admin_client):
    body = admin_client.get(f"/api/sessions/{strange.pk}/items/").json()

    assert body["data"] == STRANGE
    assert (body["first_id"], body["last_id"]) == ("msg_1", "msg_4")


@READERS
def test_a_number_that_python_cannot_hold_hides_no_others(monkeypatch, read):
    page = b'{"object":"list","data":[{"id":"a","n":%s},{"id":"b","n":NaN},{"id":"c","n":1}],"has_more":false}'
    with wire.Server(wire.answers(200, page % (b"9" * 5000))) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        items = read(operations.create_session(conversation_id="conv_1"))

    assert sorted(items, key=lambda item: item["id"]) == [
        {"id": "a", "n": None},
        {"id": "b", "n": None},
        {"id": "c", "n": 1},
    ]


@READERS
def test_what_the_api_hides_is_read_unless_the_setting_says_otherwise(sandbox, session, quick, read):
    deliver_until_settled(operations.append_items(session.pk, [IMAGE]))

    shown = [item["content"] for item in read(session)]
    quick["READ_INCLUDE"] = ("reasoning.encrypted_content",)
    hidden = [item["content"] for item in read(session)]

    assert shown == [IMAGE["content"]]
    assert hidden == [[{**IMAGE["content"][0], "image_url": None}]]
    session.refresh_from_db()
    asked = [parse_qs(urlsplit(row["path"]).query) for row in sandbox.requests(session.conversation_id)[-2:]]
    assert [query["include[]"] for query in asked] == [list(INCLUDABLE), ["reasoning.encrypted_content"]]


def test_an_agents_session_reads_by_the_setting_too(sandbox, quick):
    async def story(session):
        await session.add_items([IMAGE])
        return [item["content"][0]["image_url"] for item in await session.get_items()]

    try:
        shown = asyncio.run(story(DjangoConversationsSession(key="shown")))
        quick["READ_INCLUDE"] = ()
        hidden = asyncio.run(story(DjangoConversationsSession(key="hidden")))
    finally:
        threads.close()

    assert (shown, hidden) == (["https://example.org/a"], [None])


def test_what_the_setting_hides_is_still_compared(sandbox, session, quick):
    """Reconciliation asks for everything: an image that is hidden must not look like another one, or like none."""
    quick["READ_INCLUDE"] = ()
    sandbox.fault("lost_after", operation="append_items")

    write = deliver_until_settled(operations.append_items(session.pk, [IMAGE]))

    assert write.state == "saved"
    assert not operations.verify_session(session.pk)


def test_the_newest_items_are_read_within_a_time_for_all_pages_together(sandbox, session, quick):
    deliver_until_settled(append(session, 400))
    quick["READ_TIMEOUT"] = 0.3
    sandbox.settings(latency=0.2)
    before = len(sandbox.requests())

    with pytest.raises(RemoteReadFailed):
        operations.get_latest_items(session.pk, 10_000)

    assert len(sandbox.requests()) - before <= 2
