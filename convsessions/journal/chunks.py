"""Rows of chunks. Every function requires the caller's transaction, and the lock of the session."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from django.db.models import Case, F, Q, QuerySet, When

from convsessions.items import codec
from convsessions.models import WriteChunk, WriteIntent
from convsessions.states import WriteState

UNSETTLED = (WriteState.PENDING, WriteState.SENDING, WriteState.AMBIGUOUS)
"""States of chunks that are not settled."""


def unsettled(write: WriteIntent, using: str) -> QuerySet[WriteChunk]:
    """The chunks of an append that are not settled, in their order."""
    # Chunks settle in order, so those before `items_saved` need not be looked at.
    chunks = write.chunks.db_manager(using).filter(first_item__gte=write.items_saved, state__in=UNSETTLED)
    return chunks.defer("original").order_by("first_item")


def in_hand(write: WriteIntent, using: str) -> tuple[WriteChunk | None, list[WriteChunk]]:
    """The first of `unsettled`, and the one after it if there is one: one statement, no payload that was sent."""
    unsent = Case(When(~Q(state=WriteState.SENDING), then=F("payload")))
    rows: Any = unsettled(write, using).defer("original", "payload").annotate(unsent=unsent)[:2]
    chunks = list(rows)
    for chunk in chunks:
        if chunk.unsent is not None:
            chunk.payload = chunk.unsent
    return (chunks[0] if chunks else None), chunks[1:]


def chunk_bound(write: WriteIntent, chunk: WriteChunk, ids: Sequence[str], now: dt.datetime, using: str) -> None:
    """Mark `chunk` saved with its remote `ids`, and count its items in `write`, which the caller saves."""
    chunk.move(WriteState.SAVED)
    chunk.remote_ids, chunk.settled_at = list(ids), now
    chunk.save(update_fields=["state", "remote_ids", "settled_at"], using=using)
    write.items_saved += chunk.item_count


def split(chunk: WriteChunk, at: int, *, using: str) -> WriteChunk:
    """Cut a pending chunk before its item `at` (1..item_count - 1); it keeps what comes before, the other is new.

    The new one inherits what is known of requests that may have been applied unnoticed.
    """
    before, after = _cut(chunk.payload, at)
    original_before, original_after = _cut(chunk.original, at) if chunk.original else (None, None)
    rest = WriteChunk(
        write_id=chunk.write_id,
        first_item=chunk.first_item + at,
        item_count=chunk.item_count - at,
        payload=after,
        original=original_after,
        resent=chunk.resent,
        anchor=chunk.anchor if chunk.resent else None,
        deadline_at=chunk.deadline_at if chunk.resent else None,
    )
    chunk.item_count, chunk.payload, chunk.original = at, before, original_before
    chunk.save(update_fields=["item_count", "payload", "original"], using=using)
    rest.save(force_insert=True, using=using)
    return rest


def _cut(array: str, at: int) -> tuple[str, str]:
    """The JSON array before and from its element `at` on, each as an array."""
    elements = codec.decode(array)
    return codec.encode(elements[:at]), codec.encode(elements[at:])


def drop_chunks(chunks: QuerySet[WriteChunk], now: dt.datetime) -> None:
    """Cancel those of `chunks` that are not settled: they are not sent (again). Requires the caller's transaction."""
    chunks.filter(state__in=UNSETTLED).order_by().update(state=WriteState.CANCELLED, settled_at=now)


def remote_ids_of(session_id: uuid.UUID, generation: int, *, using: str) -> set[str]:
    """The remote ids that are bound to saved chunks of this generation of the session."""
    saved = WriteChunk.objects.using(using).filter(
        write__session_id=session_id, write__generation=generation, state=WriteState.SAVED
    )
    return {remote_id for ids in saved.values_list("remote_ids", flat=True) for remote_id in ids}
