"""What tests of calls look at: doorbells, requests in flight, and the one history that there is."""

from __future__ import annotations

from convsessions.delivery.threads import in_thread
from convsessions.models import ConversationSession, RequestAttempt
from tests.histories import eventually, remote_texts

RINGS: list[str] = []
"""The sessions whose doorbell was rung, where DISPATCHER is `ring`."""


def ring(session_id: str) -> None:
    RINGS.append(session_id)


async def in_flight(operation="append_items"):
    """Returns when a request of this kind is on its way."""
    await in_thread(eventually, RequestAttempt.objects.filter(operation=operation, outcome=None).exists)


def the_history(sandbox):
    return remote_texts(sandbox, ConversationSession.objects.get())
