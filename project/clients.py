"""The clients of a site without a key: they talk to a sandbox, which takes any key."""

from __future__ import annotations

import functools
import os
from typing import Any

import openai
from django.conf import settings

from convsessions.remote.clients import kept_async_client

KEY = "sandbox"


def sandbox_client(session: Any) -> openai.OpenAI:
    """CLIENT_FACTORY: one client per process, so that its connections are kept, but not shared over a fork."""
    return _client(os.getpid())


async def async_sandbox_client(session: Any) -> openai.AsyncOpenAI:
    """ASYNC_CLIENT_FACTORY: one client per event loop."""
    return await kept_async_client(api_key=KEY, base_url=settings.API_URL)


@functools.lru_cache(maxsize=1)
def _client(pid: int) -> openai.OpenAI:
    return openai.OpenAI(api_key=KEY, base_url=settings.API_URL, max_retries=0)
