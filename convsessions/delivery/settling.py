"""Recording how a step ended. Every function requires the turn's transaction.

Nothing here guesses: an outcome that is not known leaves the chunk `sending`, and planning reconciles it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from convsessions.conf import conf
from convsessions.exceptions import LeaseLost
from convsessions.items.comparison import contained
from convsessions.journal.restoring import RESTORED, sent_nothing_after
from convsessions.journal.turn import Turn
from convsessions.models import WriteChunk, WriteIntent
from convsessions.reconcile.engine import Answer, TooEarly, Unreadable, find_copies
from convsessions.reconcile.matching import Finding
from convsessions.reconcile.reading import History
from convsessions.remote.calls import PAGE_ITEMS
from convsessions.remote.outcomes import Outcome, Then
from convsessions.states import CancelCause, HoldCode, Operation, OutcomeKind, Verdict, WriteKind, WriteState

from .evidence import bound_ids, deleted_by, deleted_ids
from .refusals import end_append, refused_items
from .steps import LookForCopies, ReadDoomed, ReadNewest, ReadTail, Reconcile, Send

logger = logging.getLogger(__name__)

MAX_SENDS = 8
"""Times that a chunk is sent with an unknown outcome before a person is asked why it never arrives."""
MAX_READ_FAILURES = 20
"""Reads of the history that fail in a row before a person is asked: more than an hour with the default backoff."""
MAX_READ_FAILURES_BEFORE_A_CLEAR = 3
"""The same for a write that a clear supersedes: whatever is there is about to go, and the clear must not wait long."""
ALREADY_THERE = "item_already_in_conversation"


def settle_request(turn: Turn, step: Send, outcome: Outcome) -> None:
    """Record the outcome of a request that changes the remote."""
    write = _same_write(turn, step.write_id)
    turn.end_request(step.attempt_id, outcome)
    if step.call.operation is Operation.APPEND_ITEMS:
        _settle_append(turn, write, _same_chunk(turn, write, step.chunk_id), step, outcome)
    elif outcome.kind is OutcomeKind.NOT_APPLIED:
        _wait_or_refuse(turn, write, None, outcome)
    elif outcome.kind is OutcomeKind.UNKNOWN:
        _try_again(turn, write, step, outcome)
    else:
        _settle_applied(turn, write, step, outcome)


def settle_without_content(turn: Turn, step: Send, outcome: Outcome) -> None:
    """Record the outcome of a request where what follows from it needs content that cannot be read.

    What was not applied is to be sent again once it can; whatever else there is stays in flight, to be reconciled then.
    """
    write = _same_write(turn, step.write_id)
    turn.end_request(step.attempt_id, outcome)
    if step.chunk_id is not None and outcome.kind is OutcomeKind.NOT_APPLIED and outcome.then is Then.REFUSE:
        turn.chunk_not_applied(_same_chunk(turn, write, step.chunk_id))


def set_aside(turn: Turn, write: WriteIntent) -> None:
    """The content of `write` cannot be read, so that nothing of it can be sent, compared or decided: hold it.

    What was given up is not held: a clear takes away whatever is there, and else a person decides what is in flight.
    """
    logger.warning("content_unreadable session=%s write=%s", write.session_id, write.pk)
    chunk = turn.next_chunk(write) if write.kind == WriteKind.APPEND else None
    in_flight = chunk if chunk is not None and chunk.state == WriteState.SENDING else None
    if write.cancel_cause == CancelCause.CLEAR or (write.cancel_cause and in_flight is not None):
        turn.start(write)  # see `planning`
        turn.record_reconciliation(write, in_flight, Verdict.UNDECIDED, {"code": HoldCode.CONTENT.value})
        _leave_open(turn, write, in_flight, Verdict.UNDECIDED)
    else:
        code = HoldCode.CONTENT
        turn.hold(write, code, conf.RETRY_BACKOFF[1], error_code=code.value, failed=False)


def _settle_append(turn: Turn, write: WriteIntent, chunk: WriteChunk, step: Send, outcome: Outcome) -> None:
    if outcome.kind is OutcomeKind.APPLIED:
        _settle_applied_append(turn, write, chunk, step, outcome)
    elif outcome.then is Then.RECONCILE:
        turn.clear_hold(write)  # from here on the failures in a row are those of reading
        turn.note_error(write, outcome.code)
    else:
        if outcome.then is not Then.REFUSE:
            turn.chunk_not_applied(chunk)
        _wait_or_refuse(turn, write, chunk, outcome)


def _settle_applied_append(turn: Turn, write: WriteIntent, chunk: WriteChunk, step: Send, outcome: Outcome) -> None:
    altered = [
        stored["id"] for sent, stored in zip(step.sent, outcome.items, strict=True) if not contained(sent, stored)
    ]
    if not altered:
        turn.chunk_saved(write, chunk, outcome.ids)
        return
    # Applied, but not as sent: an id of another conversation's item brings that item, whatever was sent (recorded).
    evidence = {"reply": outcome.ids, "altered": altered, "parts": altered, "anchor": chunk.anchor}
    turn.record_reconciliation(write, chunk, Verdict.PARTIAL, evidence)
    _leave_open(turn, write, chunk, Verdict.PARTIAL, claimed=outcome.ids)


def _settle_applied(turn: Turn, write: WriteIntent, step: Send, outcome: Outcome) -> None:
    operation = step.call.operation
    if operation is Operation.CREATE_CONVERSATION and turn.is_anothers(outcome.data["id"]):
        # A cache in between answered, or somebody adopted it at this moment: whatever was created, it is not ours.
        _try_again(turn, write, step, replace(outcome, code="conversation_taken"))
    elif operation is Operation.CREATE_CONVERSATION:
        turn.conversation_created(outcome.data["id"])
        turn.clear_hold(write)
    elif step.target_id in write.doomed_ids:
        turn.doomed_deleted(write, step.target_id)
    else:
        if operation is Operation.DELETE_CONVERSATION:
            turn.session_cleared(write)
        elif operation is Operation.UPDATE_CONVERSATION:
            turn.metadata_set(write)
        turn.write_saved(write)


def _try_again(turn: Turn, write: WriteIntent, step: Send, outcome: Outcome) -> None:
    # Deleting one id twice is harmless, and of a conversation that was created unnoticed an empty orphan remains, which
    # the attempt's row records.
    created = step.call.operation is Operation.CREATE_CONVERSATION
    hold = HoldCode.UNREACHABLE if created else HoldCode.UNCONFIRMED
    seconds = backoff(write)
    if step.call.operation is Operation.UPDATE_CONVERSATION:
        # Setting the same metadata twice is harmless too, but not after what the next write sets: this write goes on
        # only once its request can no longer land.
        seconds = max(seconds, step.call.not_after - turn.started + conf.SETTLE_SECONDS)
    turn.hold(write, hold, seconds, error_code=outcome.code)


def _wait_or_refuse(turn: Turn, write: WriteIntent, chunk: WriteChunk | None, outcome: Outcome) -> None:
    # Of a pop, a clear or metadata, an earlier request of unknown outcome may have done what this one may not.
    half_done = write.doomed_ids or (write.kind != WriteKind.APPEND and turn.may_be_applied(write))
    if outcome.then is Then.REFUSE and half_done:
        _leave_open(turn, write, None, Verdict.UNDECIDED)
    elif outcome.then is Then.REFUSE and chunk is not None:
        refused_items(turn, write, chunk, code=outcome.code, param=outcome.param)
    elif outcome.then is Then.REFUSE:
        turn.refuse(write, None, code=outcome.code, param=outcome.param)
    else:
        turn.hold(write, outcome.hold, _seconds_to_wait(write, outcome), error_code=outcome.code)


def _seconds_to_wait(write: WriteIntent, outcome: Outcome) -> float:
    first, cap = conf.RETRY_BACKOFF
    if outcome.then is Then.HOLD:
        return cap
    told = outcome.retry_after
    # Told to come at once (0, or a date that is past by our clock), and that time and again, nothing would pause it.
    return backoff(write) if told is None or told < first else min(told, cap)


def backoff(write: WriteIntent) -> float:
    """Seconds before the next try of a write: doubled with every failure in a row, and capped."""
    first, cap = conf.RETRY_BACKOFF
    return min(first * 2.0 ** min(write.failures, 60), cap)


def settle_answer(turn: Turn, step: Reconcile, answer: Answer) -> None:
    """Record what a reconciliation found out about a chunk."""
    write = _same_write(turn, step.write_id)
    chunk = _same_chunk(turn, write, step.chunk_id)
    if isinstance(answer, TooEarly):
        turn.hold(write, HoldCode.SETTLING, answer.seconds, error_code=write.error_code, failed=False)
    elif isinstance(answer, Unreadable):
        _settle_unreadable(turn, write, chunk, answer.problem)
    else:
        _settle_finding(turn, write, chunk, _as_far_as_known(turn, step, chunk, answer))


def _as_far_as_known(turn: Turn, step: Reconcile, chunk: WriteChunk, finding: Finding) -> Finding:
    """What was found may be older than the request, where a restored journal knows nothing that precedes it."""
    nothing_known = not chunk.anchor and turn.session.tail_anchor is None and not step.question.bound
    if finding.verdict is Verdict.SAVED and nothing_known and _last_code(turn, chunk) == RESTORED:
        return replace(finding, verdict=Verdict.CONTESTED)
    return finding


def _settle_finding(turn: Turn, write: WriteIntent, chunk: WriteChunk, finding: Finding) -> None:
    turn.record_reconciliation(write, chunk, finding.verdict, finding.evidence())
    if finding.verdict is Verdict.SAVED:
        turn.chunk_saved(write, chunk, finding.ids)
    elif finding.verdict is not Verdict.ABSENT:
        _leave_open(turn, write, chunk, finding.verdict)
    elif (code := _last_code(turn, chunk)) == ALREADY_THERE:
        # Not ours: the caller gave an id that the conversation has. Sent again, it would be refused again.
        refused_items(turn, write, chunk, code=ALREADY_THERE, param="items")
    elif _sends_without_an_answer(turn, chunk) >= MAX_SENDS or (code == RESTORED and finding.foreign):
        # The second: items that no write accounts for. This one may have been there too, and been removed since.
        _leave_open(turn, write, chunk, Verdict.ABSENT)
    else:
        turn.chunk_not_applied(chunk, judged_absent=True)
        if code == RESTORED:
            sent_nothing_after(chunk, using=turn.using)
        turn.clear_hold(write)


def _last_code(turn: Turn, chunk: WriteChunk) -> str | None:
    """What the chunk's last request ended with; `interrupted` when nobody knows."""
    return chunk.requests.db_manager(turn.using).order_by("-pk").values_list("code", flat=True).first()


def _sends_without_an_answer(turn: Turn, chunk: WriteChunk) -> int:
    """Requests of unknown outcome; being told to wait is an answer. An operator's resend starts the count anew."""
    recent = chunk.requests.db_manager(turn.using).order_by("-pk")[: chunk.attempts]
    return sum(outcome == OutcomeKind.UNKNOWN for outcome in recent.values_list("outcome", flat=True))


def _settle_unreadable(turn: Turn, write: WriteIntent, chunk: WriteChunk | None, problem: Outcome) -> None:
    if _may_read_again(write, problem):
        _hold_read(turn, write, problem)
    else:
        turn.record_reconciliation(write, chunk, Verdict.UNDECIDED, {"code": problem.code, "status": problem.status})
        _leave_open(turn, write, chunk, Verdict.UNDECIDED)


def _may_read_again(write: WriteIntent, problem: Outcome) -> bool:
    if write.cancel_cause == CancelCause.CLEAR:
        return write.failures < MAX_READ_FAILURES_BEFORE_A_CLEAR and problem.then is not Then.HOLD
    return write.failures < MAX_READ_FAILURES or problem.then is Then.HOLD


def _leave_open(
    turn: Turn, write: WriteIntent, chunk: WriteChunk | None, verdict: Verdict, *, claimed: Sequence[str] = ()
) -> None:
    """The evidence did not decide. That is for a person, unless a clear waits, which takes all of it away."""
    if write.cancel_cause == CancelCause.CLEAR:
        turn.cancel(write)
    else:
        turn.ambiguous(write, chunk, verdict, claimed=claimed)


def _hold_read(turn: Turn, write: WriteIntent, problem: Outcome) -> None:
    turn.hold(write, problem.hold or HoldCode.UNREADABLE, _seconds_to_wait(write, problem), error_code=problem.code)


def settle_copies(turn: Turn, step: LookForCopies, history: History) -> None:
    """Record whether a request that was judged absent landed after all."""
    write = _same_write(turn, step.write_id)
    if write.cancel_cause == CancelCause.CLEAR:
        end_append(turn, write)  # as planning does: copies go with the conversation, and must not hold up the clear
        return
    if history.problem is not None:
        _settle_unreadable(turn, write, None, history.problem)
        return
    finding = find_copies(step.originals, history, step.bound)
    turn.record_reconciliation(write, None, finding.verdict, finding.evidence())
    if finding.verdict is Verdict.SAVED:
        end_append(turn, write)
    else:
        turn.ambiguous(write, None, finding.verdict)


def settle_tail(turn: Turn, step: ReadTail, outcome: Outcome) -> None:
    """Record the last item of a conversation that the session did not write from its start."""
    write = _write_unless_cancelled(turn, step.write_id)
    if write is None:
        return
    if outcome.kind is OutcomeKind.APPLIED:
        turn.tail_read(outcome.ids[0] if outcome.ids else "")
        turn.clear_hold(write)
    else:
        _hold_read(turn, write, outcome)


def settle_doomed(turn: Turn, step: ReadDoomed, outcome: Outcome) -> None:
    """Record which items an erasing clear deletes next, or that there are none left.

    A stale read may show an empty conversation: what the journal knows to have been there is deleted by id as well. Or
    it shows what this write has deleted: the API said that it is gone, so that it is waited for, and not for ever.
    """
    write = _write_unless_cancelled(turn, step.write_id)
    if write is None:
        return
    if outcome.kind is not OutcomeKind.APPLIED:
        _hold_read(turn, write, outcome)
    elif left := _not_in(deleted_by(write) if outcome.ids else set(), outcome.ids):
        turn.items_doomed(write, left)
    elif outcome.ids and write.failures < MAX_READ_FAILURES_BEFORE_A_CLEAR:
        turn.hold(write, HoldCode.UNREADABLE, backoff(write), error_code="stale_read")
    elif outcome.ids and outcome.data["has_more"]:
        _leave_open(turn, write, None, Verdict.UNDECIDED)  # what comes after a page that never goes cannot be seen
    elif outcome.data["has_more"]:
        turn.hold(write, HoldCode.UNREADABLE, backoff(write), error_code="empty_page")
    elif known := bound_ids(turn.session, using=turn.using) - deleted_ids(turn.session, using=turn.using):
        turn.items_doomed(write, sorted(known)[:PAGE_ITEMS])
    else:
        turn.clear_found(write)


def _not_in(gone: Collection[str], ids: Sequence[str]) -> list[str]:
    return [one for one in ids if one not in gone]


def settle_newest(turn: Turn, step: ReadNewest, newest: Outcome, after_tail: History | None) -> None:
    """Record which item a pop removes: the last one of `after_tail` where that had to be read, else of `newest`."""
    write = _write_unless_cancelled(turn, step.write_id)
    if write is None:
        return
    problem = newest if after_tail is None else after_tail.problem
    if problem is not None and problem.kind is not OutcomeKind.APPLIED:
        _hold_read(turn, write, problem)
        return
    items = newest.items[::-1] if after_tail is None else after_tail.items
    if items:
        before = step.tail if after_tail is not None and not after_tail.anchor_gone else ""
        turn.pop_found(write, items[-1], items[-2]["id"] if len(items) > 1 else before)
    elif after_tail is not None and not after_tail.anchor_gone:
        # The tail exists and nothing follows it, yet the newest item is another: one of the two reads was stale.
        turn.hold(write, HoldCode.UNREADABLE, backoff(write), error_code="stale_read")
    else:
        turn.tail_read("")
        turn.write_saved(write)


def _write_unless_cancelled(turn: Turn, write_id: object) -> WriteIntent | None:
    """The write for which something was read; None when it was cancelled meanwhile.

    While a write has nothing in flight, its author or a clear may cancel it under the lease of its worker. They ring
    no doorbell then: the worker has to go on with what comes next, and not to leave with the lease.
    """
    write = turn.head()
    if write is None or write.pk != write_id or write.state not in (WriteState.PENDING, WriteState.SENDING):
        return None
    return write


def _same_write(turn: Turn, write_id: object) -> WriteIntent:
    write = _write_unless_cancelled(turn, write_id)
    if write is None:
        raise LeaseLost(f"write {write_id} is not in this worker's hands any more")
    return write


def _same_chunk(turn: Turn, write: WriteIntent, chunk_id: int | None) -> WriteChunk:
    chunk = turn.chunk_in_hand(write)
    if chunk is None or chunk.pk != chunk_id or chunk.state != WriteState.SENDING:
        raise LeaseLost(f"a chunk of write {write.pk} is not in this worker's hands any more")
    return chunk
