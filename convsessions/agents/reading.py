"""Reading the history for the Agents SDK: all of it, or the newest items, by pages of 100."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from convsessions import operations
from convsessions.conf import conf
from convsessions.delivery.drivers import aread_all
from convsessions.delivery.latest import read_latest
from convsessions.delivery.pages import included, read_failed
from convsessions.models import ConversationSession
from convsessions.reconcile.reading import History, read_history
from convsessions.remote import clock
from convsessions.remote.outcomes import Outcome, Then
from convsessions.states import HoldCode

TRIES = 3
"""As the openai client has it: reading again does no harm."""


async def read_items(
    session_id: uuid.UUID, limit: int | None, *, patience: float, client: Any
) -> tuple[ConversationSession, list[dict[str, Any]]]:
    """The session and its newest `limit` items (None: all), the oldest first, with all writes recorded so far.

    Raises WriteNotSettled when one of these is in the way; RemoteReadFailed.
    """
    ends = clock.now() + patience
    tries = 0
    while True:
        left = max(ends - clock.now(), 0.0)
        session = await operations.settled_session(session_id, patience=left, client=client)
        if session.conversation_id is None:
            return session, []
        history = await _read(session.conversation_id, limit, client)
        if history.problem is None:
            return session, history.items if limit is None else history.items[-limit:]
        if history.problem.hold is HoldCode.MISSING:
            left = max(ends - clock.now(), 0.0)
            now = await operations.settled_session(session_id, patience=left, client=client)
            if now.conversation_id != session.conversation_id:
                continue  # somebody cleared the session while it was read
        tries += 1
        pause = _pause(history.problem, tries)
        if tries >= TRIES or history.problem.then is Then.HOLD or pause > ends - clock.now():
            raise read_failed(history.problem)
        await asyncio.sleep(pause)


async def _read(conversation_id: str, limit: int | None, client: Any) -> History:
    include = included()
    if limit is None:
        return await aread_all(client, lambda deadline: read_history(conversation_id, "", deadline, include))
    return await aread_all(client, lambda deadline: read_latest(conversation_id, limit, deadline, include=include))


async def read_plainly(conversation_id: str, client: Any) -> History:
    """The whole history as the SDK's own session reads it: without what the API leaves out unless asked."""
    return await aread_all(client, lambda deadline: read_history(conversation_id, "", deadline, ()))


def _pause(problem: Outcome, tries: int) -> float:
    first, cap = conf.RETRY_BACKOFF
    seconds = first * 2.0 ** (tries - 1) if problem.retry_after is None else problem.retry_after
    return min(seconds, cap)
