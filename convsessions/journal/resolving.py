"""What operators do with an ambiguous write: every act is checked against the evidence and leaves a row."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

from django.db import transaction

from convsessions import signals
from convsessions.exceptions import ContentUnreadable, EvidenceChanged, IllegalMove
from convsessions.items import codec
from convsessions.models import Reconciliation, WriteChunk, WriteIntent
from convsessions.states import CancelCause, Resolution, Verdict, WriteKind, WriteState
from convsessions.values import check_reason

from .chunks import UNSETTLED, chunk_bound, drop_chunks
from .halves import half_pairs_of
from .locking import alias
from .recording import lock_write, make_due, record
from .turn import announce

_CHANGED = (
    "state",
    "resolution",
    "error_code",
    "doomed_ids",
    "items_saved",
    "failures",
    "settled_at",
    "cancel_cause",
    "half_pairs",
)


def resolve(
    write_id: uuid.UUID,
    resolution: Resolution,
    *,
    finding: dict[str, Any],
    verdict: str,
    seen: int,
    actor: Any,
    reason: str,
) -> WriteIntent:
    """Carry out an operator's decision on an ambiguous write; joins the caller's transaction or opens its own.

    `finding`, `verdict`: the evidence as just read, on which the decision stands; `seen`: the id of the newest
    `Reconciliation` that the operator was shown. Remote items that the decision deletes are deleted by delivery.
    Raises WriteNotFound, IllegalMove, EvidenceChanged, InvalidInput.
    """
    check_reason(reason)
    using = alias()
    with transaction.atomic(using=using):
        write, now = lock_write(write_id, using=using)
        if write.state != WriteState.AMBIGUOUS:
            raise IllegalMove(f"write {write.pk} is {write.state}; only an ambiguous write can be resolved")
        # Locking reads, as in `lock_write`.
        looks = write.reconciliations.db_manager(using).select_for_update().order_by("-pk")
        newest = looks.values_list("pk", flat=True).first() or 0
        if newest != seen:
            raise EvidenceChanged(f"write {write.pk} was looked at again since")
        chunk = write.chunks.db_manager(using).select_for_update().filter(state=WriteState.AMBIGUOUS).first()
        Reconciliation(
            write=write,
            chunk=chunk,
            verdict=verdict,
            resolution=resolution,
            evidence=finding,
            actor=actor,
            reason=reason,
        ).save(force_insert=True, using=using)
        write.error_code = ""
        if resolution is not Resolution.RECHECK or not write.doomed_ids:
            write.resolution, write.doomed_ids = resolution, []  # else: the deletions that failed are tried again
        _RESOLVE[resolution](write, chunk, finding, now, using)
        write.save(update_fields=_CHANGED, using=using)
        # A resolution may have moved the end of the history: the next chunk looks for it anew.
        write.session.tail_anchor = None
        write.session.save(update_fields=["tail_anchor"], using=using)
        make_due(write.session, now, using=using)
    return write


def remove_half_pairs(write_id: uuid.UUID, *, actor: Any, reason: str) -> WriteIntent:
    """Record the removal of the remote items that a settled append left without what belongs to them; returns it.

    Joins the caller's transaction, or opens its own. Raises WriteNotFound, InvalidInput, SessionDeleted, and
    IllegalMove when there is no half left, or the session was cleared since.
    """
    check_reason(reason)
    using = alias()
    with transaction.atomic(using=using):
        write, _ = lock_write(write_id, using=using)
        if not write.half_pairs or write.generation != write.session.generation:
            raise IllegalMove(f"write {write.pk} has no half of a pair in the conversation")
        doomed = [half["id"] for half in write.half_pairs]
        new = WriteIntent(
            kind=WriteKind.REMOVE, doomed_ids=doomed, body_digest=codec.digest(codec.encode(doomed)), author=actor
        )
        removal, _ = record(write.session.pk, new, None, using=using)
        Reconciliation(
            write=write,
            resolution=Resolution.REMOVE_HALVES,
            evidence={"halves": write.half_pairs, "removal": str(removal.pk)},
            actor=actor,
            reason=reason,
        ).save(force_insert=True, using=using)
        write.half_pairs = []
        write.save(update_fields=["half_pairs"], using=using)
    return removal


def possible(write: WriteIntent, verdict: str, finding: dict[str, Any]) -> list[Resolution]:
    """The resolutions that make sense for this evidence, the most sensible one first."""
    if write.kind == WriteKind.POP and not write.target_id:
        # Of a restored journal. A worker cannot find out whether it was done, and done twice it removes another item.
        return [Resolution.ACCEPT, Resolution.RESEND, Resolution.ABANDON]
    if write.kind != WriteKind.APPEND:
        # Doing it again is harmless, and decides; what was popped, or is not to be, a person may say as well.
        return [Resolution.RECHECK, *([Resolution.ACCEPT] if write.kind == WriteKind.POP else []), Resolution.ABANDON]
    whole, some = bool(finding.get("runs")), bool(finding.get("runs") or finding.get("parts"))
    states = set(write.chunks.db_manager(alias()).order_by().values_list("state", flat=True).distinct())
    chunk_open = WriteState.AMBIGUOUS in states
    options = {
        Resolution.REMOVE_DUPLICATES: verdict == Verdict.DUPLICATED and bool(finding.get("extra")),
        Resolution.ACCEPT: whole or not chunk_open or (verdict == Verdict.PARTIAL and bool(finding.get("parts"))),
        Resolution.RESEND: chunk_open and not whole,
        Resolution.RECHECK: True,
        # What else of it is there is not known while later chunks are in doubt: a rollback would leave it.
        Resolution.ROLLBACK: (some or write.items_saved > 0) and WriteState.SENDING not in states,
        Resolution.ABANDON: True,
    }
    return [resolution for resolution, sensible in options.items() if sensible]


def _accept(write: WriteIntent, chunk: WriteChunk | None, finding: dict[str, Any], now: Any, using: str) -> None:
    if chunk is None:
        _accept_copies(write, now, using)
        return
    write.move(WriteState.SENDING)
    runs = finding.get("runs") or []
    chunk_bound(write, chunk, runs[0] if runs else finding.get("parts") or [], now, using)


def _accept_copies(write: WriteIntent, now: Any, using: str) -> None:
    """Every chunk that was sent is saved, and further copies stay, as the operator decided."""
    if write.chunks.db_manager(using).filter(state__in=UNSETTLED).exists():
        write.move(WriteState.SENDING)
        return
    write.move(WriteState.SAVED)
    write.settled_at = now
    announce(signals.write_saved, write, using=using)


def _remove_duplicates(
    write: WriteIntent, chunk: WriteChunk | None, finding: dict[str, Any], now: Any, using: str
) -> None:
    write.move(WriteState.SENDING)
    write.doomed_ids = list(finding["extra"])
    if chunk is not None:
        chunk_bound(write, chunk, finding["runs"][0], now, using)


def _resend(write: WriteIntent, chunk: WriteChunk | None, finding: dict[str, Any], now: Any, using: str) -> None:
    if chunk is None and write.kind != WriteKind.POP:
        raise IllegalMove(f"every chunk of write {write.pk} is saved")
    write.move(WriteState.SENDING)
    if chunk is None:
        return
    chunk.move(WriteState.SENDING)
    chunk.move(WriteState.PENDING)
    chunk.resent, chunk.attempts, chunk.remote_ids = True, 0, []
    chunk.save(update_fields=["state", "resent", "attempts", "remote_ids"], using=using)


def _recheck(write: WriteIntent, chunk: WriteChunk | None, finding: dict[str, Any], now: Any, using: str) -> None:
    write.move(WriteState.SENDING)
    write.failures = 0
    if chunk is not None:
        chunk.move(WriteState.SENDING)
        chunk.save(update_fields=["state"], using=using)


def _rollback(write: WriteIntent, chunk: WriteChunk | None, finding: dict[str, Any], now: Any, using: str) -> None:
    write.move(WriteState.SENDING)
    write.cancel_cause = CancelCause.OPERATOR
    saved = [one for ids in write.chunks.db_manager(using).values_list("remote_ids", flat=True) for one in ids]
    found = [one for run in finding.get("runs", []) for one in run] + list(finding.get("parts", []))
    write.doomed_ids = list(dict.fromkeys([*saved, *found]))


def _abandon(write: WriteIntent, chunk: WriteChunk | None, finding: dict[str, Any], now: Any, using: str) -> None:
    write.move(WriteState.CANCELLED)
    write.cancel_cause, write.settled_at = CancelCause.OPERATOR, now
    with contextlib.suppress(ContentUnreadable):
        # Without its key nobody can tell; the row of this decision says so, and a lost key must not block a session.
        write.half_pairs = half_pairs_of(write, using=using)
    drop_chunks(write.chunks.db_manager(using).all(), now)


_RESOLVE = {
    Resolution.ACCEPT: _accept,
    Resolution.RESEND: _resend,
    Resolution.REMOVE_DUPLICATES: _remove_duplicates,
    Resolution.ROLLBACK: _rollback,
    Resolution.ABANDON: _abandon,
    Resolution.RECHECK: _recheck,
}
