"""What to do next for a session, decided and journaled under its lock.

Every function requires the turn's transaction.
"""

from __future__ import annotations

import datetime as dt

from convsessions.conf import conf
from convsessions.exceptions import ContentUnreadable
from convsessions.journal.restoring import RESTORED, in_doubt
from convsessions.journal.turn import Turn
from convsessions.models import WriteChunk, WriteIntent
from convsessions.reconcile.engine import Question
from convsessions.remote import clock
from convsessions.remote.calls import (
    PAGE_ITEMS,
    AppendItems,
    CreateConversation,
    DeleteConversation,
    DeleteItem,
    ListItems,
    RemoteCall,
    UpdateConversation,
)
from convsessions.states import CancelCause, Resolution, Verdict, WriteKind, WriteState

from .evidence import bound_ids, chunks_to_verify, copies_question, last_known, rivals_of
from .refusals import end_append
from .settling import set_aside
from .steps import LookForCopies, ReadDoomed, ReadNewest, ReadTail, Reconcile, Send, Shift, Step, Wait


def plan(turn: Turn, shift: Shift) -> Step | None:
    """The next step; None when the lease was given back, for there is nothing (more) to do now.

    Raises ContentUnreadable after adding the write in question to `shift.unreadable`: what this turn has changed must
    be rolled back then, and planned anew.
    """
    while (write := turn.head()) is not None:
        if write.state == WriteState.AMBIGUOUS:
            turn.release(None)
            return None
        held = _seconds_held(turn, write)
        if held > 0:
            if held <= shift.patience() and shift.concerns(write.sequence):
                return Wait(held)
            turn.release(write.next_attempt_at)
            return None
        if shift.is_over() or not shift.concerns(write.sequence):
            turn.release(turn.now, ring=True)
            return None
        if write.pk in shift.unreadable:
            shift.unreadable.discard(write.pk)
            set_aside(turn, write)
            continue
        step = _plan(turn, write, shift)
        if step is not None:
            return step
    turn.release(None)
    return None


def _plan(turn: Turn, write: WriteIntent, shift: Shift) -> Step | None:
    try:
        return _PLANS[WriteKind(write.kind)](turn, write)
    except ContentUnreadable:
        shift.unreadable.add(write.pk)
        raise


def _seconds_held(turn: Turn, write: WriteIntent) -> float:
    if write.next_attempt_at is None:
        return 0.0
    return (write.next_attempt_at - turn.now).total_seconds()


def _plan_append(turn: Turn, write: WriteIntent) -> Step | None:
    if write.doomed_ids:
        return _send(turn, write, _delete_item(turn, write.doomed_ids[0]), write.doomed_ids[0])
    chunk = turn.next_chunk(write)
    if chunk is None:
        return _plan_end(turn, write)
    if write.resolution == Resolution.ROLLBACK:
        turn.note_interrupted(write)
        turn.cancel(write)
        return None
    if chunk.state == WriteState.SENDING:
        # Also before a clear: it may be cancelled or refused yet, and then what is there has to be known.
        turn.start(write)  # pending until its turn comes, where the journal was restored
        turn.note_interrupted(write)
        return Reconcile(write_id=write.pk, chunk_id=chunk.pk, question=_question(turn, chunk))
    if write.cancel_cause:
        turn.cancel(write)
        return None
    return _plan_chunk(turn, write, chunk)


def _plan_end(turn: Turn, write: WriteIntent) -> Step | None:
    """Every chunk is settled."""
    if write.resolution == Resolution.ROLLBACK:
        turn.cancel(write)
    elif write.cancel_cause != CancelCause.CLEAR and chunks_to_verify(write).exists():
        return _look_for_copies(turn, write)
    else:
        end_append(turn, write)
    return None


def _plan_chunk(turn: Turn, write: WriteIntent, chunk: WriteChunk) -> Step:
    """Nothing is in flight: send `chunk`, after what has to come before it."""
    payload = chunk.payload  # read first: one that cannot be read is no reason to make a conversation
    if turn.session.conversation_id is None:
        return _send(turn, write, CreateConversation(metadata=turn.session.metadata, not_after=turn.not_after))
    if turn.session.tail_anchor is None:
        return ReadTail(write_id=write.pk, call=_newest(turn, 1))
    return _send_chunk(turn, write, chunk, payload)


def _plan_pop(turn: Turn, write: WriteIntent) -> Step | None:
    if turn.session.conversation_id is None:
        turn.write_saved(write)
        return None
    if write.target_id:
        # Journaled: it may have been deleted already, so it is too late to cancel. Deleting it twice is harmless.
        return _send(turn, write, _delete_item(turn, write.target_id), write.target_id)
    if write.state == WriteState.PENDING and in_doubt(write, using=turn.using):
        turn.start(write)
        turn.record_reconciliation(write, None, Verdict.UNDECIDED, {"code": RESTORED})
        turn.ambiguous(write, None, Verdict.UNDECIDED)
        return None
    if write.cancel_cause:
        turn.cancel(write)
        return None
    tail = turn.session.tail_anchor
    if tail is None:
        # What an operator's resolution left unknown: by this, too, a stale read can be told.
        tail = last_known(turn.session, using=turn.using)
    return ReadNewest(write_id=write.pk, call=_newest(turn, 2), tail=tail)


def _plan_clear(turn: Turn, write: WriteIntent) -> Step | None:
    if write.cancel_cause and not write.target_id and not write.items_total:
        turn.cancel(write)  # else it is too late: the conversation, or a part of its items, may be gone already
        return None
    if turn.session.conversation_id is None:
        turn.session_cleared(write)
        turn.write_saved(write)
        return None
    if write.doomed_ids:
        return _send(turn, write, _delete_item(turn, write.doomed_ids[0]), write.doomed_ids[0])
    if write.erase and not write.target_id:
        return ReadDoomed(write_id=write.pk, call=_oldest(turn))
    turn.clear_found(write)
    return _send(
        turn, write, DeleteConversation(conversation_id=write.target_id, not_after=turn.not_after), write.target_id
    )


def _plan_removal(turn: Turn, write: WriteIntent) -> Step | None:
    if write.cancel_cause:
        turn.note_interrupted(write)
        turn.cancel(write)
        return None
    if write.doomed_ids and turn.session.conversation_id is not None:
        return _send(turn, write, _delete_item(turn, write.doomed_ids[0]), write.doomed_ids[0])
    turn.write_saved(write)
    return None


def _plan_metadata(turn: Turn, write: WriteIntent) -> Step | None:
    if write.cancel_cause:
        turn.note_interrupted(write)
        # What may have been applied already can be undone by a clear only, which takes the conversation with it.
        if write.cancel_cause == CancelCause.CLEAR or not turn.may_be_applied(write):
            turn.cancel(write)
            return None
    if turn.session.conversation_id is None:
        turn.metadata_set(write)
        turn.write_saved(write)
        return None
    call = UpdateConversation(
        conversation_id=turn.session.conversation_id, metadata=write.metadata, not_after=turn.not_after
    )
    return _send(turn, write, call)


_PLANS = {
    WriteKind.APPEND: _plan_append,
    WriteKind.POP: _plan_pop,
    WriteKind.CLEAR: _plan_clear,
    WriteKind.METADATA: _plan_metadata,
    WriteKind.REMOVE: _plan_removal,
}


def _delete_item(turn: Turn, item_id: str) -> DeleteItem:
    return DeleteItem(conversation_id=turn.session.conversation_id or "", not_after=turn.not_after, item_id=item_id)


def _newest(turn: Turn, limit: int) -> ListItems:
    return ListItems(
        conversation_id=turn.session.conversation_id or "", not_after=turn.not_after, order="desc", limit=limit
    )


def _oldest(turn: Turn) -> ListItems:
    return ListItems(
        conversation_id=turn.session.conversation_id or "", not_after=turn.not_after, order="asc", limit=PAGE_ITEMS
    )


def _send(turn: Turn, write: WriteIntent, call: RemoteCall, target_id: str = "") -> Send:
    turn.note_interrupted(write)
    attempt_id = turn.begin_request(write, call.operation, target_id=target_id)
    return Send(call=call, write_id=write.pk, attempt_id=attempt_id, target_id=target_id)


def _send_chunk(turn: Turn, write: WriteIntent, chunk: WriteChunk, payload: str) -> Send:
    attempt_id = turn.begin_request(write, AppendItems.operation, chunk=chunk)
    call = AppendItems(
        conversation_id=turn.session.conversation_id or "",
        not_after=turn.not_after,
        payload=payload,
        count=chunk.item_count,
    )
    return Send(call=call, write_id=write.pk, attempt_id=attempt_id, chunk_id=chunk.pk, sent=chunk.items)


def _question(turn: Turn, chunk: WriteChunk) -> Question:
    settled_at = (chunk.deadline_at or turn.now) + dt.timedelta(seconds=conf.SETTLE_SECONDS)
    return Question(
        conversation_id=turn.session.conversation_id or "",
        anchor=chunk.anchor or "",
        sent=chunk.items,
        bound=bound_ids(turn.session, using=turn.using),
        claimed=chunk.remote_ids,
        rivals=rivals_of(chunk, turn.session, using=turn.using),
        absence_from=clock.now() + (settled_at - turn.now).total_seconds(),
    )


def _look_for_copies(turn: Turn, write: WriteIntent) -> LookForCopies:
    anchor, originals = copies_question(write)
    return LookForCopies(
        write_id=write.pk,
        conversation_id=turn.session.conversation_id or "",
        anchor=anchor,
        originals=originals,
        bound=bound_ids(turn.session, using=turn.using),
    )
