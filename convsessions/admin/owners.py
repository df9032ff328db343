"""Which item of which write a remote item is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from convsessions.models import ConversationSession, WriteChunk
from convsessions.states import WriteState


@dataclass(frozen=True, slots=True)
class Owner:
    """The write that a remote item is bound to, and its `position` in it; `mine`: it is the write in question."""

    write_id: Any
    sequence: int
    position: int
    mine: bool = False


def owners_of(session: ConversationSession, mine: Any = None) -> dict[str, Owner]:
    """What each remote id of the session's saved chunks is bound to: one query. `mine`: the write in question."""
    saved = WriteChunk.objects.filter(
        write__session=session.pk, write__generation=session.generation, state=WriteState.SAVED
    ).order_by()
    return {
        one: Owner(write_id, sequence, first + index, mine=write_id == mine)
        for write_id, sequence, first, ids in saved.values_list(
            "write_id", "write__sequence", "first_item", "remote_ids"
        )
        for index, one in enumerate(ids)
    }
