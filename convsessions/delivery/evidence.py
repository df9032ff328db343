"""What the journal contributes to a reconciliation: ids that are spoken for, and chunks that could explain a run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.db.models import Q, QuerySet
from django.utils import timezone

from convsessions.conf import conf
from convsessions.journal.chunks import remote_ids_of
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, RequestAttempt, WriteChunk, WriteIntent
from convsessions.reconcile.matching import Item
from convsessions.states import Operation, OutcomeKind, WriteState

RIVAL_WINDOW = dt.timedelta(hours=1)
"""How long after its deadline a request that was judged absent is still thought able to land."""

Originals = list[tuple[Sequence[Item], Sequence[str]]]


def bound_ids(session: ConversationSession, *, using: str) -> frozenset[str]:
    """The remote ids that are bound to saved chunks of the session's present generation."""
    return frozenset(remote_ids_of(session.pk, session.generation, using=using))


def deleted_ids(session: ConversationSession, *, using: str) -> set[str]:
    """The remote ids of the session's present generation that pops, removals, erasures and operators deleted."""
    deletions = RequestAttempt.objects.using(using).filter(
        write__session=session, write__generation=session.generation,
        operation=Operation.DELETE_ITEM, outcome=OutcomeKind.APPLIED,
    )  # fmt: skip
    return set(deletions.values_list("target_id", flat=True))


def deleted_by(write: WriteIntent) -> set[str]:
    """The remote ids that `write` itself deleted."""
    deletions = write.requests.db_manager(alias()).filter(operation=Operation.DELETE_ITEM, outcome=OutcomeKind.APPLIED)
    return set(deletions.values_list("target_id", flat=True))


def last_known(session: ConversationSession, *, using: str) -> str:
    """An item that ought to be in the conversation by what the journal knows, of the last that were saved; or ""."""
    saved = WriteChunk.objects.using(using).filter(
        write__session=session, write__generation=session.generation, state=WriteState.SAVED
    )
    deleted = deleted_ids(session, using=using)
    for ids in saved.order_by("-settled_at", "-pk").values_list("remote_ids", flat=True).iterator(chunk_size=20):
        for remote_id in reversed(ids):
            if remote_id not in deleted:
                return str(remote_id)
    return ""


def rivals_of(chunk: WriteChunk, session: ConversationSession, *, using: str) -> list[Sequence[Item]]:
    """The items of other chunks of the session of which a request may have been applied without our noticing."""
    unnoticed = Q(resent=True) | Q(state=WriteState.CANCELLED, attempts__gt=0)
    rivals = WriteChunk.objects.using(using).filter(
        unnoticed,
        write__session=session,
        write__generation=session.generation,
        # A host's clock may be off by minutes; the window is not meant to be exact.
        deadline_at__gt=timezone.now() - RIVAL_WINDOW,
    )
    return [rival.items for rival in rivals.exclude(pk=chunk.pk)]


def chunks_to_verify(write: WriteIntent) -> QuerySet[WriteChunk]:
    """The chunks of a write of which a copy may stand in the remote history without anybody having said so."""
    # What was refused, and never sent before that, cannot be there.
    chunks = write.chunks.db_manager(alias()).exclude(state=WriteState.REFUSED, resent=False)
    return chunks if conf.VERIFY_WRITES else chunks.filter(resent=True)


def copies_question(write: WriteIntent) -> tuple[str, Originals]:
    """Where to look for copies of a write's chunks, from the first one on: the anchor, and items with their ids."""
    chunks = list(chunks_to_verify(write))
    anchor = (chunks[0].anchor or "") if chunks else ""
    return anchor, [(chunk.items, chunk.remote_ids) for chunk in chunks]
