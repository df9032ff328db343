"""What an operator does: look again, resolve, try again, verify."""

from __future__ import annotations

import math
import uuid
from typing import Any

from convsessions.delivery.inquiry import Inspection, inspect_write, unreadable
from convsessions.delivery.verification import Drift, verify
from convsessions.exceptions import ContentUnreadable, EvidenceChanged, InvalidInput, RemoteReadFailed
from convsessions.journal import recording, resolving
from convsessions.journal.locking import alias
from convsessions.models import WriteIntent
from convsessions.states import Resolution, Verdict
from convsessions.values import check_reason, check_seconds

from .reading import get_write
from .sessions import as_cleared, session_of


def retry_write(write_id: uuid.UUID, *, actor: Any = None, reason: str = "") -> WriteIntent:
    """Try a held or a refused write again. A refused one now comes after writes that were recorded later.

    `actor`, `reason`: who asks and why; with a reason, both are kept as a `Reconciliation`.
    Raises WriteNotFound, IllegalMove, SessionDeleted. Joins the caller's transaction.
    """
    return recording.retry(write_id, actor=actor, reason=reason)


def reconcile_write(write_id: uuid.UUID, *, actor: Any = None, reason: str = "checked again") -> WriteIntent:
    """Have an ambiguous write compared with the remote once more by a worker.

    Raises WriteNotFound, IllegalMove. Joins the caller's transaction.
    """
    write = get_write(write_id)
    newest = write.reconciliations.db_manager(alias()).order_by("-pk").values_list("pk", flat=True).first() or 0
    return resolving.resolve(
        write_id, Resolution.RECHECK, finding={}, verdict="", seen=newest, actor=actor, reason=reason
    )


def resolve_write(
    write_id: uuid.UUID, resolution: str, *, reason: str, actor: Any = None, evidence: str | None = None
) -> WriteIntent:
    """Carry out an operator's decision on an ambiguous write, after comparing the evidence once more.

    `resolution`: one of `Resolution`; `reason`: mandatory text; `evidence`: the `token` of the `inspect_write` on which
    the operator decided. Reads the remote (not inside a transaction). Raises InvalidInput, WriteNotFound, IllegalMove,
    RemoteReadFailed, ContentUnreadable, and EvidenceChanged when the remote or the write is no longer what the operator
    was shown.
    """
    if resolution not in Resolution.values:
        raise InvalidInput("resolution", f"choose one of {', '.join(Resolution.values)}")
    check_reason(reason)
    inspection = _evidence_for(write_id, Resolution(resolution))
    if evidence is not None and inspection.verdict != Verdict.UNDECIDED and evidence != inspection.token:
        raise EvidenceChanged(f"the remote history of write {write_id} has changed since")
    if resolution not in inspection.possible:
        options = ", ".join(option.value for option in inspection.possible)
        raise InvalidInput("resolution", f"not possible with this evidence; choose one of {options}")
    return resolving.resolve(
        write_id,
        Resolution(resolution),
        finding=inspection.evidence,
        verdict=inspection.verdict,
        seen=inspection.seen,
        actor=actor,
        reason=reason,
    )


def remove_half_pairs(write_id: uuid.UUID, *, reason: str, actor: Any = None) -> WriteIntent:
    """Record the removal of what a settled append left without its other half (`write.half_pairs`); returns that write.

    `reason`: mandatory text. Raises WriteNotFound, InvalidInput, SessionDeleted; IllegalMove when there is nothing to
    remove. Joins the caller's transaction.
    """
    return resolving.remove_half_pairs(write_id, actor=actor, reason=reason)


def _evidence_for(write_id: uuid.UUID, resolution: Resolution) -> Inspection:
    try:
        return inspect_write(write_id)
    except (RemoteReadFailed, ContentUnreadable) as error:
        # Neither needs to know what is there; and what can never be read again must not block a session.
        if resolution in {Resolution.ABANDON, Resolution.RECHECK}:
            return unreadable(write_id, error)
        raise


def verify_session(session_id: uuid.UUID, *, seconds: float = math.inf) -> Drift:
    """Compare what the journal says is saved with the remote history. Changes nothing.

    `seconds`: for the whole read. Raises SessionNotFound, RemoteReadFailed, and ContentUnreadable where the present
    CIPHER cannot read what was sent; RuntimeError inside a transaction.
    """
    check_seconds("seconds", seconds)
    session = session_of(session_id)
    while True:
        try:
            return verify(session, seconds=seconds)
        except RemoteReadFailed as error:
            now = as_cleared(session) if error.status == 404 else None
            if now is None:
                raise
            session = now
