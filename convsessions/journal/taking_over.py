"""Recording an append whose requests somebody else may have sent already."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from convsessions import signals
from convsessions.exceptions import Conflict
from convsessions.items import codec
from convsessions.items.chunking import Chunk
from convsessions.items.intake import Intake
from convsessions.models import Reconciliation, WriteChunk, WriteIntent
from convsessions.states import Verdict, WriteState

from .chunks import chunk_bound
from .locking import alias, lock_session
from .recording import append_row, batches, chunk_row, record
from .turn import announce

_CHANGED = ("state", "generation", "started_at", "error_code", "items_saved", "settled_at")


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of where such an append stands in the history.

    `anchor`: the remote id of the last item before it, empty for none; None: not known, so that a person has to
    decide, with `evidence`. `found`: the remote ids of every chunk, where all are proven to be stored.
    """

    anchor: str | None
    found: Sequence[Sequence[str]] | None = None
    evidence: dict[str, Any] = field(default_factory=dict)


def record_take_over(
    session_id: uuid.UUID,
    intake: Intake,
    chunks: Iterable[Chunk],
    *,
    place: Place,
    author: Any = None,
    idempotency_key: str,
) -> WriteIntent:
    """Record an append as if our own worker had died after sending each of `chunks`: delivery finds out which it did.

    `chunks` must be cut as the requests were. Joins the caller's transaction, or opens its own. Raises
    SessionNotFound, IdempotencyConflict, and Conflict while a write of the session is open.
    """
    using = alias()
    new = append_row(intake, author=author)
    with transaction.atomic(using=using):
        locked, now = lock_session(session_id, using=using)
        known = WriteIntent.objects.using(using).filter(
            session_id=session_id, idempotency_digest=codec.digest(idempotency_key)
        )
        if not known.exists() and WriteIntent.objects.using(using).queue(session_id).exists():
            raise Conflict(f"session {session_id} has an open write; it has to settle first")
        write, is_new = record(session_id, new, idempotency_key, using=using)
        if is_new:
            write.generation, write.started_at = locked.generation, now
            write.move(WriteState.SENDING)
            _store(write, chunks, place.anchor or "", now, using)
            if place.found is not None:
                _settle(write, place.found, now, using)
            elif place.anchor is None:
                _open_for_a_person(write, place.evidence, using)
            write.save(update_fields=_CHANGED, using=using)
    return write


def _store(write: WriteIntent, chunks: Iterable[Chunk], anchor: str, now: dt.datetime, using: str) -> None:
    for batch in batches(chunks):
        WriteChunk.objects.using(using).bulk_create(
            chunk_row(write, chunk, state=WriteState.SENDING, anchor=anchor, deadline_at=now, attempts=1)
            for chunk in batch
        )


def _settle(write: WriteIntent, found: Sequence[Sequence[str]], now: dt.datetime, using: str) -> None:
    for chunk, ids in zip(write.chunks.db_manager(using).all(), found, strict=True):
        chunk_bound(write, chunk, ids, now, using)
    write.move(WriteState.SAVED)
    write.settled_at = now
    announce(signals.write_saved, write, using=using)


def _open_for_a_person(write: WriteIntent, evidence: dict[str, Any], using: str) -> None:
    first = write.chunks.db_manager(using).get(first_item=0)
    first.move(WriteState.AMBIGUOUS)
    first.save(update_fields=["state"], using=using)
    write.move(WriteState.AMBIGUOUS)
    write.error_code = Verdict.UNDECIDED.value
    Reconciliation(write=write, chunk=first, verdict=Verdict.UNDECIDED, evidence=evidence).save(
        force_insert=True, using=using
    )
    announce(signals.write_ambiguous, write, using=using)
