from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai import OpenAI

from convsessions.sandbox.testing import SandboxProcess


@pytest.fixture(scope="session")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("sandbox")) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(process: SandboxProcess) -> SandboxProcess:
    process.reset()
    return process


@pytest.fixture
def client(sandbox: SandboxProcess) -> Iterator[OpenAI]:
    with OpenAI(base_url=sandbox.base_url, api_key="sandbox", max_retries=0, timeout=10) as client:
        yield client


@pytest.fixture
def conversation(client: OpenAI) -> str:
    return client.conversations.create().id


def user(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text, **fields}


def call(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"call_{number}", "name": "f", "arguments": "{}", **fields}


def texts(items: list[dict[str, Any]]) -> list[str]:
    """The text of each message, for comparing histories at a glance."""
    return [item["content"][0]["text"] for item in items]


def raw(page: Any) -> Any:
    """What came over the wire, without what the client's types add."""
    return page.model_dump(exclude_unset=True, warnings=False)


def eventually(condition: Callable[[], Any], seconds: float = 5) -> Any:
    """The first true value of `condition`."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return value
