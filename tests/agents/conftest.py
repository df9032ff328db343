"""Sessions of the Agents SDK against the sandbox: ours, and the SDK's own for comparison."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from agents import set_tracing_disabled
from openai import AsyncOpenAI

from convsessions.delivery import threads

from .watching import RINGS

T = TypeVar("T")


@pytest.fixture(scope="session", autouse=True)
def _no_tracing() -> None:
    set_tracing_disabled(True)


@pytest.fixture(autouse=True)
def _threads_end() -> Iterator[None]:
    """The threads' connections are closed before the test database is emptied or dropped."""
    yield
    threads.close()


@pytest.fixture
def run(transactional_db, sandbox) -> Callable[[Coroutine[Any, Any, T]], T]:
    """Runs a coroutine as a process would, in an event loop of its own, on a database that every thread sees."""
    return asyncio.run


@pytest.fixture
def rings(quick) -> list[str]:
    """The doorbells that were rung: ids of sessions."""
    quick["DISPATCHER"] = "tests.agents.watching.ring"
    RINGS.clear()
    return RINGS


@asynccontextmanager
async def client_of(server: Any) -> AsyncIterator[AsyncOpenAI]:
    """A client for a sandbox, or for a base URL."""
    url = server if isinstance(server, str) else server.base_url
    async with AsyncOpenAI(api_key="sk-test", base_url=url) as client:
        yield client
