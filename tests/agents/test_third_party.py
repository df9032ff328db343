"""The same stories on a Conversations API that we did not write: agentic-api, by the vLLM project."""

from __future__ import annotations

import pytest
from agents import OpenAIConversationsSession

from convsessions import operations
from convsessions.agents import DjangoConversationsSession
from convsessions.models import ConversationSession
from tests.histories import messages, texts

from .conftest import client_of
from .scripted import STORIES
from .test_runner import without_ids

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def url(agentic_url, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", agentic_url)
    return agentic_url


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_the_same_history_as_with_the_sdks_own_session(run, url, story):
    async def both():
        async with client_of(url) as client:
            theirs, ours = OpenAIConversationsSession(openai_client=client), DjangoConversationsSession(key="k")
            await story(theirs)
            await story(ours)
            as_the_sdk_reads_ours = OpenAIConversationsSession(openai_client=client, conversation_id=ours.session_id)
            read = [await session.get_items() for session in (theirs, as_the_sdk_reads_ours, ours)]
            return [without_ids(items) for items in read]

    theirs, ours_by_the_sdk, ours = run(both())

    assert ours_by_the_sdk == theirs
    assert ours == theirs
    assert not operations.verify_session(ConversationSession.objects.get().pk)


def test_long_histories_limits_pops_and_clears(run, url):
    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(130))
        newest = await session.get_items(limit=101)
        popped = await session.pop_item()
        left = await session.get_items()
        await session.clear_session()
        return newest, popped, left, await session.get_items()

    newest, popped, left, after = run(story())
    assert texts(newest) == texts(messages(130))[-101:]
    assert texts([popped]) == ["m129"]
    assert texts(left) == texts(messages(129))
    assert after == []
