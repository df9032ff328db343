"""The whole way of items: intake, journal, wire, sandbox, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from convsessions import operations
from convsessions.items import codec
from convsessions.models import ConversationSession, WriteChunk
from convsessions.sandbox.testing import SandboxProcess
from tests.histories import deliver_until_settled

Item = dict[str, Any]


@dataclass(frozen=True)
class Journey:
    """The items of one append: `journaled` as sent, `stored` as the remote has them, `read` as they come back.

    `journaled`: a JSON array a chunk; `given`: the JSON of each item as it was given, None where it was sent so.
    """

    session: ConversationSession
    state: str
    journaled: list[str]
    given: list[str | None]
    stored: list[Item]
    read: list[Item]


def journey(sandbox: SandboxProcess, items: list[Any], session: ConversationSession | None = None) -> Journey:
    """Append `items` to a session, deliver, read. Raises InvalidItem."""
    session = session or operations.create_session()
    write = deliver_until_settled(operations.append_items(session.pk, items))
    session.refresh_from_db()
    chunks = list(write.chunks.all())
    return Journey(
        session=session,
        state=write.state,
        journaled=[chunk.payload for chunk in chunks],
        given=[given for chunk in chunks for given in _originals(chunk)],
        stored=sandbox.items(session.conversation_id) if session.conversation_id else [],
        read=operations.get_latest_items(session.pk, 10_000)["data"],
    )


def _originals(chunk: WriteChunk) -> list[str | None]:
    kept = codec.decode(chunk.original) if chunk.original else [None] * chunk.item_count
    return [None if item is None else codec.encode(item) for item in kept]
