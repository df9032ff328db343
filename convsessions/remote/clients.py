"""The clients of the Conversations API.

A host names its own factories in ``CLIENT_FACTORY`` and ``ASYNC_CLIENT_FACTORY``: callables that take the session and
return a client, for instance with the key of the session's tenant. Keys are never stored.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import openai

from convsessions.conf import conf


def client_for(session: Any) -> openai.OpenAI:
    """The client with which the requests of `session` are made. Raises what the host's factory raises."""
    client: openai.OpenAI = conf.import_string("CLIENT_FACTORY")(session)
    return client


def async_client_for(session: Any) -> openai.AsyncOpenAI:
    """The async twin of `client_for`."""
    client: openai.AsyncOpenAI = conf.import_string("ASYNC_CLIENT_FACTORY")(session)
    return client


def default_client(session: Any) -> openai.OpenAI:
    """The client that the environment describes (``OPENAI_API_KEY``, ``OPENAI_BASE_URL``, …), one per process.

    Keeping it keeps its connections alive. A child process gets one of its own: a connection shared over a fork would
    mix two processes' requests. Raises openai.OpenAIError when there is no key.
    """
    return _client(os.getpid(), *_environment())


def default_async_client(session: Any) -> openai.AsyncOpenAI:
    """The async twin of `default_client`. Its connections belong to the running event loop, so it is not kept."""
    return openai.AsyncOpenAI(max_retries=0)


def _environment() -> tuple[str | None, ...]:
    return tuple(os.environ.get(name) for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"))


@functools.lru_cache(maxsize=4)
def _client(pid: int, key: str | None, base_url: str | None) -> openai.OpenAI:
    return openai.OpenAI(api_key=key, base_url=base_url, max_retries=0)
