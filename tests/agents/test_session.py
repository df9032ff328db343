"""`DjangoConversationsSession` as a session: what each method does, and what it says when it cannot."""

from __future__ import annotations

import asyncio

from convsessions.agents import DjangoConversationsSession
from convsessions.models import ConversationSession, WriteIntent
from tests.histories import messages, remote_texts, texts


def test_items_come_back_in_order_over_several_requests(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(45))
        return await session.get_items()

    assert texts(run(story())) == texts(messages(45))
    assert remote_texts(sandbox, ConversationSession.objects.get()) == texts(messages(45))


def test_each_reply_lost_once(run, sandbox):
    """45 items are three requests; the reply to each of them is lost once, and the call returns all the same."""
    sandbox.fault("lost_after", operation="append_items", times=1)

    async def story():
        session = DjangoConversationsSession(key="k")
        for _ in range(1):
            await session.add_items(messages(45))
        return await session.get_items()

    assert texts(run(story())) == texts(messages(45))


def test_pop_and_clear(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k")
        assert await session.pop_item() is None
        await session.add_items(messages(3))
        first = session.session_id
        popped = await session.pop_item()
        await session.clear_session()
        empty = await session.get_items()
        await session.add_items(messages(1, prefix="n"))
        return first != session.session_id, popped, empty, await session.get_items(limit=5)

    changed, popped, empty, items = run(story())
    assert changed
    assert texts([popped]) == ["m2"]
    assert empty == []
    assert texts(items) == ["n0"]
