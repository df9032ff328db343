"""Comparing what the journal says is saved with what the remote holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from convsessions.items.comparison import contained
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, WriteChunk
from convsessions.reconcile.reading import read_history
from convsessions.states import Resolution, WriteState

from . import drivers
from .evidence import deleted_ids
from .pages import read_failed


@dataclass(slots=True)
class Drift:
    """Differences between journal and remote; all empty: none. Ids of items.

    `missing`: saved, but not in the remote history; `altered`: there, with other content; `reordered`: there, but not
    in the journal's order; `foreign`: in the remote, and no saved write accounts for it. `purged`: of how many items
    the journal does not have the content any more; of those only id and place are compared.
    """

    checked: int
    purged: int = 0
    missing: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    reordered: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.missing or self.altered or self.reordered)


def verify(session: ConversationSession, *, seconds: float = math.inf) -> Drift:
    """Read the whole history of `session` and compare; the whole read within `seconds`.

    Raises RemoteReadFailed, ContentUnreadable; RuntimeError inside a transaction.
    """
    if session.conversation_id is None:
        return Drift(checked=0)
    conversation_id = session.conversation_id
    history = drivers.read_all(
        session, lambda next_deadline: read_history(conversation_id, "", next_deadline), seconds=seconds
    )
    if history.problem is not None:
        raise read_failed(history.problem)
    stored = {item["id"]: item for item in history.items}
    position = {item["id"]: index for index, item in enumerate(history.items)}
    drift = Drift(checked=len(history.items))
    expected: set[str] = set()
    deleted = deleted_ids(session, using=alias())
    highest = -1
    for chunk in _saved_chunks(session):
        sent_items = chunk.items if chunk.payload else [None] * len(chunk.remote_ids)
        for sent, remote_id in zip(sent_items, chunk.remote_ids, strict=False):
            if remote_id in deleted:
                continue
            expected.add(remote_id)
            if remote_id not in stored:
                drift.missing.append(remote_id)
                continue
            if sent is None:
                drift.purged += 1
            elif not contained(sent, stored[remote_id]):
                drift.altered.append(remote_id)
            if position[remote_id] < highest:
                drift.reordered.append(remote_id)
            highest = max(highest, position[remote_id])
    drift.foreign.extend(one for one in stored if one not in expected)
    return drift


def _saved_chunks(session: ConversationSession) -> list[WriteChunk]:
    chunks = WriteChunk.objects.using(alias()).filter(
        write__session=session, write__generation=session.generation, state=WriteState.SAVED
    )
    chunks = chunks.exclude(write__state=WriteState.CANCELLED, write__resolution=Resolution.ROLLBACK)
    return list(chunks.order_by("settled_at", "write__sequence", "first_item"))
