"""`iter_items`: a history of any length, page by page, and what may go wrong between two pages."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
import uuid

import pytest
from django.db import transaction

from convsessions import operations
from convsessions.delivery import threads
from convsessions.exceptions import RemoteReadFailed, SessionNotFound
from tests.histories import append, deliver_until_settled, messages, texts
from tests.remote import wire

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def long(session, sandbox):
    """A session of 250 items: m0 to m249."""
    deliver_until_settled(append(session, 250))
    session.refresh_from_db()
    return session


def pages_read(sandbox, session) -> list[str]:
    return [row["path"] for row in sandbox.requests(session.conversation_id) if row["method"] == "GET"]


def test_every_item_comes_once_in_order_in_pages_of_a_hundred(sandbox, long):
    items = list(operations.iter_items(long.pk))

    assert items == sandbox.items(long.conversation_id)
    assert len(pages_read(sandbox, long)) == 3
    assert all("limit=100" in path and "order=asc" in path for path in pages_read(sandbox, long))


def test_the_async_twin_reads_the_same(sandbox, long):
    async def everything():
        return [item async for item in operations.aiter_items(long.pk)]

    try:
        assert asyncio.run(everything()) == sandbox.items(long.conversation_id)
    finally:
        threads.close()


def test_a_page_is_read_when_it_is_asked_for(sandbox, long):
    items = operations.iter_items(long.pk)
    assert pages_read(sandbox, long) == []

    first = [next(items) for _ in range(100)]

    assert texts(first) == texts(messages(100))
    assert len(pages_read(sandbox, long)) == 1


def test_what_is_appended_meanwhile_comes_too(sandbox, long):
    items = operations.iter_items(long.pk)
    next(items)

    sandbox.append_foreign(long.conversation_id, messages(1, prefix="late"))

    assert texts(list(items)) == [*texts(messages(250))[1:], "late0"]


@pytest.mark.parametrize("deleted", [[99], [99, 98, 97], [98], [100]], ids=str)
def test_items_that_are_deleted_meanwhile_cost_no_others(sandbox, long, deleted):
    """Also not when one of them is the item at which the reading stands."""
    stored = sandbox.items(long.conversation_id)
    items = operations.iter_items(long.pk)
    read = [next(items) for _ in range(100)]

    client = _client(sandbox)
    for position in deleted:
        client.conversations.items.delete(stored[position]["id"], conversation_id=long.conversation_id)
    read += items

    assert [item for item in read if item in stored] == read
    assert [stored.index(item) for item in read] == [at for at in range(250) if at < 100 or at not in deleted]


def _client(sandbox):
    from openai import OpenAI

    return OpenAI(base_url=sandbox.base_url, api_key="sk-test")


def test_a_page_that_fails_is_asked_for_again(sandbox, long):
    sandbox.fault("error_before", operation="list_items", status=503, times=2, skip=1)

    assert texts(operations.iter_items(long.pk)) == texts(messages(250))


def test_a_page_that_fails_three_times_ends_the_reading_with_an_error_and_no_earlier_item_is_lost(sandbox, long):
    sandbox.fault("error_before", operation="list_items", status=503, times=None, skip=1)
    items, read = operations.iter_items(long.pk), []

    with pytest.raises(RemoteReadFailed) as failed:
        read.extend(items)

    assert failed.value.status == 503
    assert texts(read) == texts(messages(100))
    assert len(pages_read(sandbox, long)) == 4


def test_a_key_that_is_refused_is_not_tried_again(sandbox, long):
    sandbox.fault("bad_key", operation="list_items")

    with pytest.raises(RemoteReadFailed):
        list(operations.iter_items(long.pk))
    assert len(pages_read(sandbox, long)) == 1


@pytest.mark.parametrize("kind", ["empty_page", "stuck_cursor"])
def test_a_server_that_does_not_move_on_ends_the_reading(sandbox, long, kind):
    sandbox.fault(kind, operation="list_items", times=None, skip=1)

    with pytest.raises(RemoteReadFailed) as failed:
        list(operations.iter_items(long.pk))
    assert failed.value.code == "cursor_does_not_advance"


def test_a_session_that_was_never_written_to_has_no_items_and_costs_no_request(sandbox, session):
    assert list(operations.iter_items(session.pk)) == []
    assert sandbox.requests() == []


def test_errors_of_the_caller_come_at_once(sandbox, session):
    with pytest.raises(SessionNotFound):
        operations.iter_items(uuid.uuid4())
    with transaction.atomic(), pytest.raises(RuntimeError, match="transaction"):
        operations.iter_items(session.pk)


PAGES, ITEM_BYTES = 40, 20_000


def test_no_more_than_a_few_pages_are_in_memory_at_a_time(monkeypatch):
    """80 MB of items, of which 2 MB are a page."""

    def page(number):
        def script(connection):
            connection.read_request()
            data = [{"id": f"m_{number}_{at}", "text": "x" * ITEM_BYTES} for at in range(100)]
            body = {"object": "list", "data": data, "has_more": number < PAGES - 1}
            connection.send(wire.reply(200, json.dumps(body).encode(), {"content-type": "application/json"}))

        return script

    with wire.Server(*[page(number) for number in range(PAGES)]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        session = operations.create_session(conversation_id="conv_1")
        tracemalloc.start()
        try:
            count = sum(1 for _ in operations.iter_items(session.pk))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert count == PAGES * 100
    assert peak < 10 * 100 * ITEM_BYTES, f"{peak / 1e6:.0f} MB"
