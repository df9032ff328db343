"""The whole way of items: intake, journal, wire, sandbox, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from convsessions import operations
from convsessions.models import ConversationSession
from convsessions.sandbox.testing import SandboxProcess
from tests.histories import deliver_until_settled

Item = dict[str, Any]


@dataclass(frozen=True)
class Journey:
    """The items of one append: `journaled` as sent, `stored` as the remote has them, `read` as they come back."""

    session: ConversationSession
    state: str
    journaled: list[str]
    stored: list[Item]
    read: list[Item]


def journey(sandbox: SandboxProcess, items: list[Any], session: ConversationSession | None = None) -> Journey:
    """Append `items` to a session, deliver, read. Raises InvalidItem."""
    session = session or operations.create_session()
    write = deliver_until_settled(operations.append_items(session.pk, items))
    session.refresh_from_db()
    payloads = [chunk.payload for chunk in write.chunks.all()]
    return Journey(
        session=session,
        state=write.state,
        journaled=payloads,
        stored=sandbox.items(session.conversation_id) if session.conversation_id else [],
        read=operations.get_latest_items(session.pk, 10_000)["data"],
    )
