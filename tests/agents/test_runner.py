"""The SDK's real Runner with a scripted model: the histories that it leaves with our session and with the SDK's own."""

from __future__ import annotations

import pytest
from agents import OpenAIConversationsSession

from convsessions.agents import DjangoConversationsSession
from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import WriteState

from .conftest import client_of
from .scripted import STORIES


def without_ids(items):
    return [{name: value for name, value in item.items() if name != "id"} for item in items]


async def with_sdk(sandbox, story):
    """The history that the SDK's own session leaves."""
    async with client_of(sandbox) as client:
        session = OpenAIConversationsSession(openai_client=client)
        await story(session)
        return without_ids(sandbox.items(session.session_id)), without_ids(await session.get_items())


async def with_ours(sandbox, story):
    session = DjangoConversationsSession(key="k")
    await story(session)
    return without_ids(sandbox.items(session.session_id)), without_ids(await session.get_items())


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_the_same_history_as_with_the_sdks_own_session(run, sandbox, story):
    async def both():
        return await with_sdk(sandbox, story), await with_ours(sandbox, story)

    theirs, ours = run(both())

    assert ours == theirs
    assert ours[0] == ours[1]
    assert set(WriteIntent.objects.values_list("state", flat=True)) == {WriteState.SAVED}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_the_exact_history_when_every_reply_is_lost_once(run, sandbox, story):
    async def expected_and_ours():
        expected = await with_sdk(sandbox, story)
        for skip in range(0, 12, 2):
            sandbox.fault("lost_after", operation="append_items", times=1, skip=skip)
        return expected, await with_ours(sandbox, story)

    expected, ours = run(expected_and_ours())

    assert ours == expected
    assert ConversationSession.objects.count() == 1
