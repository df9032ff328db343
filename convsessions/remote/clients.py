"""The clients of the Conversations API.

A host names its own factories in ``CLIENT_FACTORY`` and ``ASYNC_CLIENT_FACTORY``: callables that take the session and
return a client, for instance with the key of the session's tenant. Keys are never stored.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import AsyncGenerator, Callable
from typing import Any

import openai

from convsessions.conf import conf


def client_for(session: Any) -> openai.OpenAI:
    """The client with which the requests of `session` are made. Raises what the host's factory raises."""
    client: openai.OpenAI = conf.import_string("CLIENT_FACTORY")(session)
    return client


async def async_client_for(session: Any, in_thread: Callable[..., Any]) -> openai.AsyncOpenAI:
    """The async twin of `client_for`. A factory that is no coroutine function is called with `in_thread`."""
    factory = conf.import_string("ASYNC_CLIENT_FACTORY")
    is_async = inspect.iscoroutinefunction(factory)
    client: openai.AsyncOpenAI = await (factory(session) if is_async else in_thread(factory, session))
    return client


def default_client(session: Any) -> openai.OpenAI:
    """The client that the environment describes (``OPENAI_API_KEY``, ``OPENAI_BASE_URL``, …), one per process.

    Keeping it keeps its connections alive. A child process gets one of its own: a connection shared over a fork would
    mix two processes' requests. Raises openai.OpenAIError when there is no key.
    """
    return _client(os.getpid(), *_environment())


async def default_async_client(session: Any) -> openai.AsyncOpenAI:
    """The async twin of `default_client`, one per event loop."""
    key, base_url = _environment()
    return await kept_async_client(api_key=key, base_url=base_url)


async def kept_async_client(**options: Any) -> openai.AsyncOpenAI:
    """The client that has these options in this event loop: made once, and closed when the loop ends.

    For the ``ASYNC_CLIENT_FACTORY`` of a host, which is ``async def`` then. `options`: hashable ones of
    `openai.AsyncOpenAI`. Connections belong to their event loop, and making them anew for every call is slow.
    """
    loop = asyncio.get_running_loop()
    kept = _KEPT.get(loop)
    if kept is None:
        for ended in [other for other in _KEPT if other.is_closed()]:
            _KEPT.pop(ended, None)
        kept = _KEPT[loop] = {}
    asked = tuple(sorted(options.items()))
    if asked not in kept:
        client = openai.AsyncOpenAI(**{"max_retries": 0, **options})
        closing = _open_until_the_loop_ends(loop, client)
        await anext(closing)
        kept[asked] = client, closing
    return kept[asked][0]


Kept = dict[tuple[tuple[str, Any], ...], tuple[openai.AsyncOpenAI, AsyncGenerator[None]]]

_KEPT: dict[asyncio.AbstractEventLoop, Kept] = {}


async def _open_until_the_loop_ends(
    loop: asyncio.AbstractEventLoop, client: openai.AsyncOpenAI
) -> AsyncGenerator[None]:
    # A loop ends the async generators that were begun in it, before it is closed (`shutdown_asyncgens`: `asyncio.run`
    # and the servers do it). There is no other hook for the end of a loop.
    try:
        yield
    finally:
        _KEPT.pop(loop, None)
        await client.close()


def _environment() -> tuple[str | None, ...]:
    return tuple(os.environ.get(name) for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"))


@functools.lru_cache(maxsize=4)
def _client(pid: int, key: str | None, base_url: str | None) -> openai.OpenAI:
    return openai.OpenAI(api_key=key, base_url=base_url, max_retries=0)
