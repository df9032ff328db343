"""Both gateways behind one call, so that every test of this folder says the same of either."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import openai
import pytest

from convsessions.remote import clock, gateway
from convsessions.remote.calls import INCLUDE, AppendItems, DeleteConversation, DeleteItem, ListItems, RemoteCall
from convsessions.remote.outcomes import Outcome

from .wire import Script, Server

KEY = "sk-the-secret-key"
SECRET = "the secret text"
PAYLOAD = f'[{{"role":"user","content":"{SECRET}"}},{{"role":"user","content":"b"}}]'

Perform = Callable[..., Outcome]


def within(seconds: float) -> float:
    return clock.now() + seconds


def append(*, payload: str = PAYLOAD, count: int = 2, seconds: float = 5.0) -> AppendItems:
    return AppendItems(conversation_id="conv_1", payload=payload, count=count, not_after=within(seconds))


def list_items(*, after: str = "", seconds: float = 5.0, include: Sequence[str] = INCLUDE) -> ListItems:
    return ListItems(conversation_id="conv_1", after=after, not_after=within(seconds), include=include)


def delete_item(*, seconds: float = 5.0) -> DeleteItem:
    return DeleteItem(conversation_id="conv_1", item_id="msg_1", not_after=within(seconds))


def delete_conversation(*, seconds: float = 5.0) -> DeleteConversation:
    return DeleteConversation(conversation_id="conv_1", not_after=within(seconds))


def stored(*ids: str) -> dict[str, Any]:
    """The reply to an append, or a page."""
    data = [{"id": one, "type": "message", "role": "user", "content": []} for one in ids]
    return {"object": "list", "data": data, "first_id": ids[0], "last_id": ids[-1], "has_more": False}


@pytest.fixture(params=["sync", "async"])
def perform(request) -> Perform:
    """Perform a call with a fresh client of the real `openai` library, sync or async; options go to the client."""

    def sync(call: RemoteCall, base_url: str, **options: Any) -> Outcome:
        with openai.OpenAI(**{"api_key": KEY, "base_url": base_url, **options}) as client:
            return gateway.perform(call, client)

    async def asynchronously(call: RemoteCall, base_url: str, **options: Any) -> Outcome:
        async with openai.AsyncOpenAI(**{"api_key": KEY, "base_url": base_url, **options}) as client:
            return await gateway.aperform(call, client)

    if request.param == "sync":
        return sync
    return lambda call, base_url, **options: asyncio.run(asynchronously(call, base_url, **options))


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start a server with these scripts, for the time of the test."""
    servers: list[Server] = []

    def start(*scripts: Script, **options: Any) -> Server:
        servers.append(Server(*scripts, **options).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__(None, None, None)
