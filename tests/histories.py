"""Histories in short: messages with one text each, and what the remote holds of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import connection

from convsessions import operations
from convsessions.models import ConversationSession, WriteIntent
from convsessions.sandbox.testing import SandboxProcess

T = TypeVar("T")


def messages(count: int, *, prefix: str = "m", start: int = 0) -> list[dict[str, Any]]:
    """`count` user messages: m0, m1, …"""
    return [{"type": "message", "role": "user", "content": f"{prefix}{start + index}"} for index in range(count)]


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["content"] if isinstance(item["content"], str) else item["content"][0]["text"] for item in items]


def remote_texts(sandbox: SandboxProcess, session: ConversationSession) -> list[str]:
    """The ground truth: the texts that the remote conversation of `session` holds, in order."""
    session.refresh_from_db()
    return texts(sandbox.items(session.conversation_id)) if session.conversation_id else []


def append(session: ConversationSession, count: int, **options: Any) -> WriteIntent:
    return operations.append_items(session.pk, messages(count, **options))


def eventually(condition: Callable[[], T], *, seconds: float = 60.0) -> T:
    """The first true value of `condition`; fails after `seconds`."""
    ends = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)
    return value


def deliver_until_settled(write: WriteIntent, *, seconds: float = 60.0) -> WriteIntent:
    """Deliver as often as it takes, as doorbells and sweeps would, until the write is settled or needs a person."""

    def settled() -> WriteIntent | None:
        operations.deliver(write.session_id)
        now = operations.get_write(write.pk)
        return now if now.settled or now.needs_attention else None

    return eventually(settled, seconds=seconds)


def deliver_and_close(session_id: uuid.UUID) -> None:
    """For a thread: deliver, and leave no connection behind."""
    try:
        operations.deliver(session_id)
    finally:
        connection.close()


def append_requests(sandbox: SandboxProcess, session: ConversationSession) -> list[dict[str, Any]]:
    """The log of requests that append to the session's conversation."""
    session.refresh_from_db()
    rows = sandbox.requests(session.conversation_id)
    return [row for row in rows if row["method"] == "POST" and row["path"].split("?")[0].endswith("/items")]
