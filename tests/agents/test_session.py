"""`DjangoConversationsSession` as a session: what each method does, and how a session is named."""

from __future__ import annotations

import asyncio

import pytest
from agents import OpenAIConversationsSession, OpenAIResponsesCompactionSession
from agents.run_internal.session_persistence import rewind_session_items
from django.contrib.auth import get_user_model

from convsessions import operations
from convsessions.agents import DjangoConversationsSession
from convsessions.exceptions import ConversationTaken, InvalidInput, InvalidItem, SessionNotFound
from convsessions.models import ConversationSession, WriteIntent
from tests.histories import append_requests, messages, remote_texts, texts

from .conftest import client_of


def test_items_come_back_in_order_over_several_requests(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(45))
        return await session.get_items()

    assert texts(run(story())) == texts(messages(45))
    assert remote_texts(sandbox, ConversationSession.objects.get()) == texts(messages(45))


def test_pages_of_100_are_read(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(150))
        before = len(sandbox.requests())
        await session.get_items()
        await session.get_items(limit=150)
        return [row["path"] for row in sandbox.requests()[before:]]

    paths = run(story())
    assert len(paths) == 4
    assert all("limit=100" in path for path in (paths[0], paths[1], paths[2]))


def test_the_runner_takes_it_for_the_sdks_own(sandbox):
    session = DjangoConversationsSession(key="k")

    assert isinstance(session, OpenAIConversationsSession)
    with pytest.raises(ValueError, match="cannot wrap OpenAIConversationsSession"):
        OpenAIResponsesCompactionSession("k", underlying_session=session)


def test_adding_nothing_records_nothing(run, sandbox):
    run(DjangoConversationsSession(key="k").add_items([]))

    assert not ConversationSession.objects.exists()


def test_an_item_that_cannot_be_sent_is_refused_before_anything_is_recorded(run, sandbox):
    with pytest.raises(InvalidItem, match=r"items\[1\]"):
        run(DjangoConversationsSession(key="k").add_items([*messages(1), {"type": "message"}]))

    assert not WriteIntent.objects.exists()


# -- names -----------------------------------------------------------------------------------------------------------


def test_exactly_one_name_is_needed():
    for wrong in ({}, {"key": "k", "conversation_id": "conv_1"}):
        with pytest.raises(InvalidInput, match="exactly one"):
            DjangoConversationsSession(**wrong)
    with pytest.raises(InvalidInput, match="a session or its id"):
        DjangoConversationsSession(session="no uuid")


def test_a_key_is_unique_per_owner(run, sandbox):
    ann, bob = (get_user_model().objects.create_user(name) for name in ("ann", "bob"))

    async def story():
        for owner in (ann, bob, None):
            await DjangoConversationsSession(key="k", owner=owner).add_items(messages(1))
        await DjangoConversationsSession(key="k", owner=ann).add_items(messages(1))

    run(story())

    assert ConversationSession.objects.count() == 3
    assert [one.author for one in WriteIntent.objects.order_by("created_at")] == [ann, bob, None, ann]


def test_a_row_or_its_id_names_a_session(run, sandbox):
    row = operations.create_session()

    async def story():
        for name in (row, row.pk, str(row.pk)):
            await DjangoConversationsSession(session=name).add_items(messages(1))

    run(story())

    assert remote_texts(sandbox, row) == ["m0"] * 3


def test_the_id_of_no_session(run, sandbox):
    with pytest.raises(SessionNotFound):
        run(DjangoConversationsSession(session="00000000-0000-0000-0000-000000000000").get_items())


def test_an_existing_conversation_is_adopted_with_what_it_holds(run, sandbox):
    async def story():
        async with client_of(sandbox) as client:
            theirs = OpenAIConversationsSession(openai_client=client)
            await theirs.add_items(messages(2, prefix="old"))
            ours = DjangoConversationsSession(conversation_id=theirs.session_id)
            await ours.add_items(messages(1, prefix="new"))
            assert ours.session_id == theirs.session_id
            return await theirs.get_items()

    assert texts(run(story())) == ["old0", "old1", "new0"]


def test_a_conversation_of_somebody_else_is_not_adopted(run, sandbox):
    ann, bob = (get_user_model().objects.create_user(name) for name in ("ann", "bob"))
    row = operations.create_session(owner=ann, conversation_id="conv_1")

    with pytest.raises(ConversationTaken):
        run(DjangoConversationsSession(conversation_id=row.conversation_id, owner=bob).get_items())


def test_the_session_id_is_the_conversations(run, sandbox):
    """It is known before any other call: the SDK compares it when it resumes a run in another process."""

    async def write():
        session = DjangoConversationsSession(key="k")
        with pytest.raises(ValueError, match="no conversation yet"):
            _ = session.session_id
        assert await session.get_items() == []
        await session.add_items(messages(1))
        return session.session_id

    async def elsewhere():
        return DjangoConversationsSession(key="k").session_id

    assert run(write()) == run(elsewhere()) == ConversationSession.objects.get().conversation_id


def test_setting_the_session_id_turns_to_another_conversation(run, sandbox):
    async def story():
        one, two = (DjangoConversationsSession(key=key) for key in ("one", "two"))
        await one.add_items(messages(1, prefix="one"))
        await two.add_items(messages(1, prefix="two"))
        one.session_id = two.session_id
        return await one.get_items()

    assert texts(run(story())) == ["two0"]


# -- the Runner's ways -----------------------------------------------------------------------------------------------


def test_a_rewind_takes_back_exactly_what_was_added(run, sandbox):
    stored = {"type": "message", "role": "user", "status": "completed"}
    added = [{**stored, "content": [{"type": "input_text", "text": text}]} for text in ("two", "three")]

    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(1, prefix="one"))
        await session.add_items(added)
        await rewind_session_items(session, added)
        return await session.get_items()

    assert texts(run(story())) == ["one0"]
    assert WriteIntent.objects.filter(kind="pop", state="saved").count() == 2


def test_one_object_in_one_event_loop_after_the_other(run, sandbox):
    session = DjangoConversationsSession(key="k")

    run(session.add_items(messages(1, prefix="a")))
    run(session.add_items(messages(1, prefix="b")))

    assert texts(run(session.get_items())) == ["a0", "b0"]


def test_calls_on_one_object_keep_their_order(run, sandbox):
    async def story():
        session = DjangoConversationsSession(key="k")
        await asyncio.gather(*(session.add_items(messages(1, prefix=f"{n}-")) for n in range(10)))
        return await session.get_items()

    assert texts(run(story())) == [f"{n}-0" for n in range(10)]


def test_a_given_client_makes_the_requests(run, sandbox, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")

    async def story():
        async with client_of(sandbox) as client:
            session = DjangoConversationsSession(key="k", openai_client=client)
            await session.add_items(messages(21))
            return await session.get_items()

    assert texts(run(story())) == texts(messages(21))
    assert len(append_requests(sandbox, ConversationSession.objects.get())) == 2
