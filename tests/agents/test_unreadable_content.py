"""What a pop removed, and the site's keys cannot decrypt just then, is not lost to its caller."""

from __future__ import annotations

import asyncio

import pytest
from cryptography.fernet import Fernet

from convsessions.agents import DjangoConversationsSession
from convsessions.exceptions import ContentUnreadable
from tests.histories import messages

from .watching import in_flight, the_history


def test_a_pop_whose_item_cannot_be_read_can_be_repeated_and_removes_one_item(run, sandbox, rings, quick):
    key = Fernet.generate_key().decode()
    quick["CIPHER"], quick["CIPHER_KEYS"] = "convsessions.ciphers.fernet", [key]

    async def story():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(3))
        sandbox.settings(latency=0.3)
        popping = asyncio.create_task(session.pop_item())
        await in_flight("delete_item")  # the item is journaled before it is deleted
        quick["CIPHER_KEYS"] = [Fernet.generate_key().decode()]
        with pytest.raises(ContentUnreadable):
            await popping
        quick["CIPHER_KEYS"] = [key]
        return await session.pop_item()

    assert run(story())["content"][0]["text"] == "m2"
    assert the_history(sandbox) == ["m0", "m1"]
