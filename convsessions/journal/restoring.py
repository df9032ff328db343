"""Taking up a journal that was restored from a backup.

Of what was open when the backup was made, nobody knows how much was done since. It is journaled as what a dead worker
leaves behind: each chunk as sent, with an unknown outcome, so that delivery looks for it before it sends anything. A
write stays pending meanwhile, for one write of a session at most may be begun; its chunks are not.

- What is found once is saved; of an append of which nothing is there, nothing after it can be there either, for a
  request is made only after the one before it was saved.
- Where nothing is found, but items that no write accounts for, a person decides: it may have been there, too, and been
  removed since.
- A pop that had not found its item yet is for a person as well: done twice, it would remove another item.
- Removals by id, changes of metadata and clears are done again, which is harmless.
- After a clear, and in a session without a conversation, nothing can be in a conversation that the journal knows.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Q

from convsessions.conf import conf
from convsessions.models import ConversationSession, Reconciliation, RequestAttempt, WriteChunk, WriteIntent
from convsessions.states import Operation, OutcomeKind, WriteKind, WriteState

from .locking import lock_session

RESTORED = "restored"
"""Code of a request of which a restored journal cannot know: it may have been made after the backup."""
REASON = "the journal was restored from a backup"
_OPERATIONS = {WriteKind.APPEND: Operation.APPEND_ITEMS, WriteKind.POP: Operation.DELETE_ITEM}
_UNKNOWN = Q(state__in=(WriteState.PENDING, WriteState.SENDING))


@dataclass(frozen=True, slots=True)
class Doubts:
    """What of a session is in doubt: numbers of writes. `has_conversation`: whether the journal knows one."""

    appends: int
    pops: int
    has_conversation: bool


def doubt(session_id: uuid.UUID, *, using: str, dry_run: bool = False) -> Doubts:
    """Journal that every open write of a session may have been sent since the backup; `dry_run`: only count them.

    Whoever has the lease loses it, and with it what it learned. Rings no doorbell: the sweep finds the session. Opens
    its own transaction, or joins the caller's. Raises SessionNotFound.
    """
    with transaction.atomic(using=using):
        locked, now = lock_session(session_id, using=using)
        doubtful = list(_doubtful(locked, using)) if locked.conversation_id is not None else []
        if not dry_run:
            _journal(doubtful, _anchor(locked, using), now, using)
            ConversationSession.objects.using(using).filter(pk=session_id).update(
                lease_token=None, lease_expires_at=None, wake_at=now, updated_at=now, version=F("version") + 1
            )
    kinds = [write.kind for write in doubtful]
    return Doubts(kinds.count(WriteKind.APPEND), kinds.count(WriteKind.POP), locked.conversation_id is not None)


def in_doubt(write: WriteIntent, *, using: str) -> bool:
    """Whether a pending write may have been sent, for the journal was restored. Requires the lock of the session."""
    if write.started_at is None:
        return False
    if write.kind == WriteKind.POP:
        return not write.target_id
    return write.chunks.db_manager(using).filter(state=WriteState.SENDING).exists()


def sent_nothing_after(chunk: WriteChunk, *, using: str) -> None:
    """A chunk in doubt is proven absent: what follows it in its write was not sent. Requires the caller's turn."""
    later = WriteChunk.objects.using(using).filter(write_id=chunk.write_id, first_item__gt=chunk.first_item)
    later.filter(state=WriteState.SENDING).order_by().update(state=WriteState.PENDING)


def _doubtful(locked: ConversationSession, using: str) -> Iterator[WriteIntent]:
    for write in WriteIntent.objects.using(using).queue(locked.pk).defer("popped"):
        if write.kind == WriteKind.CLEAR:
            return
        if write.kind == WriteKind.APPEND or (write.kind == WriteKind.POP and not write.target_id):
            yield write


def _anchor(locked: ConversationSession, using: str) -> str:
    """An item known to precede whatever was sent since the backup; empty: none is known."""
    if locked.tail_anchor is not None:
        return locked.tail_anchor
    saved = WriteChunk.objects.using(using).filter(
        write__session=locked, write__generation=locked.generation, state=WriteState.SAVED
    )
    newest = saved.order_by("-settled_at", "-write__sequence", "-first_item").values_list("remote_ids", flat=True)
    ids = newest.first()
    return ids[-1] if ids else ""


def _journal(doubtful: list[WriteIntent], anchor: str, now: dt.datetime, using: str) -> None:
    # As if it had been sent just now: whoever did send it may have died a moment ago.
    deadline = now + dt.timedelta(seconds=conf.REQUEST_TIMEOUT)
    requests = []
    for write in doubtful:
        write.started_at = write.started_at or now
        write.save(update_fields=["started_at"], using=using)
        chunks: list[int | None] = [None]
        if write.kind == WriteKind.APPEND:
            chunks = list(_doubt_chunks(write, anchor, deadline, using))
        requests += [
            RequestAttempt(
                write=write, chunk_id=chunk, operation=_OPERATIONS[WriteKind(write.kind)], sent_at=now,
                deadline_at=deadline, outcome=OutcomeKind.UNKNOWN, code=RESTORED, finished_at=now,
            )
            for chunk in chunks
        ]  # fmt: skip
        Reconciliation(write=write, evidence={"act": RESTORED}, reason=REASON).save(force_insert=True, using=using)
    RequestAttempt.objects.using(using).bulk_create(requests, batch_size=100)


def _doubt_chunks(write: WriteIntent, anchor: str, deadline: dt.datetime, using: str) -> list[int]:
    """Mark the chunks that are not settled as sent; returns their ids."""
    chunks = WriteChunk.objects.using(using).filter(_UNKNOWN, write=write).order_by()
    ids = list(chunks.order_by("first_item").values_list("pk", flat=True))
    # What was in flight, or is sent again, keeps its own anchor, as `Turn.begin_request` has it.
    chunks.filter(Q(anchor=None) | Q(state=WriteState.PENDING, resent=False)).update(anchor=anchor)
    chunks.update(state=WriteState.SENDING, deadline_at=deadline, attempts=F("attempts") + 1)
    return ids
