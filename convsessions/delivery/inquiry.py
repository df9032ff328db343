"""Reading the remote for an operator: what the history says now about an ambiguous write, and what can be done."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from convsessions.exceptions import ContentUnreadable, IllegalMove, RemoteReadFailed, WriteNotFound
from convsessions.items import codec
from convsessions.journal.locking import alias
from convsessions.journal.resolving import possible
from convsessions.models import WriteIntent
from convsessions.reconcile.engine import Question, find_copies, judge
from convsessions.reconcile.matching import Finding
from convsessions.reconcile.reading import History, read_history
from convsessions.states import HoldCode, Resolution, Verdict, WriteState
from convsessions.values import as_uuid

from . import drivers
from .evidence import bound_ids, copies_question, rivals_of
from .pages import read_failed

INSPECTION_SECONDS = 10.0
"""A person is waiting: seconds for the whole read."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The evidence as just read. `token` stands for it; `seen` is the newest `Reconciliation` at that time.

    `history`: what was read, items with content, after `anchor`, or from the start if the anchor is gone.
    """

    verdict: str
    evidence: dict[str, Any]
    possible: list[Resolution]
    seen: int
    anchor: str = ""
    history: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @property
    def token(self) -> str:
        kept = {name: value for name, value in self.evidence.items() if name != "pages"}
        return codec.digest(codec.encode([self.verdict, kept, self.seen]))


def inspect_write(write_id: uuid.UUID) -> Inspection:
    """Read the remote history for an ambiguous write; changes nothing.

    Raises WriteNotFound, IllegalMove when the write is not ambiguous, RemoteReadFailed, ContentUnreadable; RuntimeError
    inside a transaction.
    """
    write = _ambiguous(write_id)
    seen = _newest(write)  # before the read: what is recorded meanwhile makes the inspection stale
    finding, anchor, history = _look(write)
    evidence = finding.evidence()
    options = possible(write, finding.verdict, evidence)
    return Inspection(finding.verdict.value, evidence, options, seen, anchor, history.items)


def unreadable(write_id: uuid.UUID, error: RemoteReadFailed | ContentUnreadable) -> Inspection:
    """What can be done about an ambiguous write while its history, or its content, cannot be read.

    Raises WriteNotFound, IllegalMove.
    """
    write = _ambiguous(write_id)
    if isinstance(error, ContentUnreadable):
        evidence: dict[str, Any] = {"code": HoldCode.CONTENT.value}
    else:
        evidence = {"code": error.code, "status": error.status}
    return Inspection(Verdict.UNDECIDED.value, evidence, [Resolution.RECHECK, Resolution.ABANDON], _newest(write))


def _ambiguous(write_id: uuid.UUID) -> WriteIntent:
    write = (
        WriteIntent.objects.using(alias()).select_related("session").filter(pk=as_uuid(write_id, WriteNotFound)).first()
    )
    if write is None:
        raise WriteNotFound(f"no write {write_id}")
    if write.state != WriteState.AMBIGUOUS:
        raise IllegalMove(f"write {write.pk} is {write.state}; only an ambiguous write can be resolved")
    return write


def _newest(write: WriteIntent) -> int:
    """The id of the newest `Reconciliation`, 0 for none."""
    return write.reconciliations.db_manager(alias()).order_by("-pk").values_list("pk", flat=True).first() or 0


def _look(write: WriteIntent) -> tuple[Finding, str, History]:
    """What the history says, the anchor from which it was read, and the history."""
    chunk = write.chunks.db_manager(alias()).filter(state=WriteState.AMBIGUOUS).first()
    bound = bound_ids(write.session, using=alias())
    if chunk is None:
        anchor, originals = copies_question(write)
        history = _read(write, anchor)
        return find_copies(originals, history, bound), anchor, history
    question = Question(
        conversation_id=write.session.conversation_id or "",
        anchor=chunk.anchor or "",
        sent=chunk.items,
        bound=bound,
        claimed=chunk.remote_ids,
        rivals=rivals_of(chunk, write.session, using=alias()),
    )
    history = _read(write, question.anchor)
    return judge(question, history), question.anchor, history


def _read(write: WriteIntent, anchor: str) -> History:
    conversation_id = write.session.conversation_id or ""
    history = drivers.read_all(
        write.session,
        lambda next_deadline: read_history(conversation_id, anchor, next_deadline),
        seconds=INSPECTION_SECONDS,
    )
    if history.problem is not None:
        raise read_failed(history.problem)
    return history
