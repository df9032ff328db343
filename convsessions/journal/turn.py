"""What a worker may record in one step, under the lock of its session.

Every method requires the transaction that `leases.claim` or `leases.turn` opened, and works on the locked rows.
"""

from __future__ import annotations

import datetime as dt
import functools
import uuid
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.dispatch import Signal

from convsessions import enqueue, signals
from convsessions.conf import conf
from convsessions.exceptions import LeaseLost
from convsessions.models import ConversationSession, Reconciliation, RequestAttempt, WriteChunk, WriteIntent
from convsessions.remote.outcomes import Outcome
from convsessions.states import (
    CancelCause,
    HoldCode,
    Operation,
    OutcomeKind,
    Resolution,
    Verdict,
    WriteKind,
    WriteState,
)

from .chunks import chunk_bound, drop_chunks, in_hand, split, unsettled
from .erasing import erase_content
from .halves import half_pairs_of

INTERRUPTED = "interrupted"
"""Code of a request whose worker died, or lost its lease, before its outcome was recorded."""


class Turn:
    """`session` is the locked row, `now` the database's time, `not_after` when a request begun here must have ended."""

    def __init__(self, locked: ConversationSession, now: dt.datetime, started: float, using: str) -> None:
        self.session, self.now, self.started, self.using = locked, now, started, using
        # Counted from before the lock was asked for, so that a long wait for it shortens the request, never the grace.
        self.not_after = started + conf.REQUEST_TIMEOUT
        self._token, self._expired_at = locked.lease_token, locked.lease_expires_at
        self._released = False
        self._head: WriteIntent | None = None
        self._after: list[WriteChunk] = []
        self._following: list[WriteChunk] | None = None

    def take(self, lease_token: uuid.UUID) -> None:
        """Make this the token of the lease; `close` writes it, where the row still has the one that was read."""
        self.session.lease_token = lease_token

    # -- reading -------------------------------------------------------------------------------------------------

    def head(self) -> WriteIntent | None:
        """The first open write of the session."""
        # Nobody else can settle it within this turn, nor put another one before it.
        if self._head is None:
            self._head = WriteIntent.objects.using(self.using).queue(self.session.pk).defer("popped").first()
        return self._head

    def next_chunk(self, write: WriteIntent) -> WriteChunk | None:
        """The first chunk of an append that is not settled."""
        if self._following is None:
            return unsettled(write, self.using).first()
        following, self._following = self._following, None
        return following[0] if following else None

    def chunk_in_hand(self, write: WriteIntent) -> WriteChunk | None:
        """As `next_chunk`, without its payload where it is being sent; reads the one after it, too."""
        chunk, self._after = in_hand(write, self.using)
        return chunk

    # -- requests ------------------------------------------------------------------------------------------------

    def begin_request(
        self, write: WriteIntent, operation: Operation, *, chunk: WriteChunk | None = None, target_id: str = ""
    ) -> int:
        """Journal a request before it is sent; returns the id of its attempt."""
        self.start(write)
        deadline = self.now + dt.timedelta(seconds=conf.REQUEST_TIMEOUT)
        if chunk is not None:
            chunk.move(WriteState.SENDING)
            if not chunk.resent or chunk.anchor is None:
                # Sent again, it keeps its first anchor: a late copy of the first request may stand before the tail.
                chunk.anchor = self.session.tail_anchor
            chunk.deadline_at, chunk.attempts = deadline, chunk.attempts + 1
            chunk.save(update_fields=["state", "anchor", "deadline_at", "attempts"], using=self.using)
        attempt = RequestAttempt(
            write=write, chunk=chunk, operation=operation, target_id=target_id, sent_at=self.now, deadline_at=deadline
        )
        attempt.save(force_insert=True, using=self.using)
        return attempt.pk

    def end_request(self, attempt_id: int, outcome: Outcome) -> None:
        """Record how a request ended."""
        RequestAttempt.objects.using(self.using).filter(pk=attempt_id).update(
            outcome=outcome.kind,
            code=outcome.code,
            param=outcome.param,
            status=outcome.status,
            request_id=outcome.request_id,
            finished_at=self.now,
        )

    def note_interrupted(self, write: WriteIntent) -> None:
        """Record that the requests of `write` which have no outcome will never get one: their worker is gone."""
        RequestAttempt.objects.using(self.using).filter(write=write, outcome__isnull=True).update(
            outcome=OutcomeKind.UNKNOWN, code=INTERRUPTED, finished_at=self.now
        )

    def may_be_applied(self, write: WriteIntent) -> bool:
        """Whether a request of `write` was applied for all that is known."""
        return write.requests.db_manager(self.using).exclude(outcome=OutcomeKind.NOT_APPLIED).exists()

    def start(self, write: WriteIntent) -> None:
        """The write is begun, in this generation of its session; nothing changes if it was begun before."""
        if write.state == WriteState.PENDING:
            write.move(WriteState.SENDING)
            write.generation, write.started_at = self.session.generation, write.started_at or self.now
            write.save(update_fields=["state", "generation", "started_at"], using=self.using)
        elif write.generation != self.session.generation:  # pragma: no cover - a clear cancels what stands before it
            raise LeaseLost(f"write {write.pk} belongs to generation {write.generation}")

    # -- chunks --------------------------------------------------------------------------------------------------

    def chunk_saved(self, write: WriteIntent, chunk: WriteChunk, ids: Sequence[str]) -> None:
        """The chunk is proven applied: `ids` are its items in the remote history, in order."""
        chunk_bound(write, chunk, ids, self.now, self.using)
        # What came after it when it was in hand is what comes next now.
        self._following, self._after = self._after, []
        self.clear_hold(write, also=["items_saved"])
        self.session.tail_anchor = ids[-1] if ids else self.session.tail_anchor

    def chunk_not_applied(self, chunk: WriteChunk, *, judged_absent: bool = False) -> None:
        """The request stored nothing: told so by the server, or (`judged_absent`) concluded from the history."""
        chunk.move(WriteState.PENDING)
        chunk.resent = chunk.resent or judged_absent
        chunk.save(update_fields=["state", "resent"], using=self.using)

    def split_chunk(self, chunk: WriteChunk, at: int) -> WriteChunk:
        """Cut a pending chunk before its item `at`; returns the new one, which holds what comes from there on."""
        return split(chunk, at, using=self.using)

    def skip_chunk(self, write: WriteIntent, chunk: WriteChunk, *, code: str, param: str) -> None:
        """The API refused this pending chunk, of one item, and its write goes on without it."""
        self._refuse_chunk(chunk, code, param)
        self.clear_hold(write)

    def _refuse_chunk(self, chunk: WriteChunk, code: str, param: str) -> None:
        chunk.move(WriteState.REFUSED)
        chunk.error_code, chunk.error_param, chunk.settled_at = code, param, self.now
        chunk.save(update_fields=["state", "error_code", "error_param", "settled_at"], using=self.using)

    # -- writes --------------------------------------------------------------------------------------------------

    def write_saved(self, write: WriteIntent) -> None:
        """Every part of the write is proven applied, or was skipped as its author wished."""
        self._settle(write, WriteState.SAVED, signals.write_saved)

    def hold(self, write: WriteIntent, code: HoldCode, seconds: float, *, error_code: str, failed: bool = True) -> None:
        """Have the write wait for `seconds` because of `code`; `failed`: count one more failure in a row."""
        if write.kind == WriteKind.CLEAR and write.cancel_cause and code == HoldCode.MISSING:
            self.cancel(write)  # given up, and there is no conversation in which it could go on
            return
        write.hold_code, write.error_code = code, error_code
        write.next_attempt_at = self.now + dt.timedelta(seconds=seconds)
        write.failures += failed
        write.save(update_fields=["hold_code", "error_code", "next_attempt_at", "failures"], using=self.using)

    def clear_hold(self, write: WriteIntent, *, also: Sequence[str] = ()) -> None:
        """The write gets on: it waits for nothing, and no failure counts any more. `also`: further fields to save."""
        write.hold_code, write.error_code, write.next_attempt_at, write.failures = HoldCode.NONE, "", None, 0
        fields = ["hold_code", "error_code", "next_attempt_at", "failures", *also]
        write.save(update_fields=fields, using=self.using)

    def note_error(self, write: WriteIntent, code: str) -> None:
        """Keep what the API said, for the reconciliation that follows."""
        write.error_code = code
        write.save(update_fields=["error_code"], using=self.using)

    def refuse(self, write: WriteIntent, chunk: WriteChunk | None, *, code: str, param: str = "") -> None:
        """The API said a definite no: what was saved before stays, what comes after is not sent."""
        if chunk is not None:
            self._refuse_chunk(chunk, code, param)
        # The chunks after it stay pending: an operator's retry sends them, and nothing else does.
        write.error_code, write.error_param = code, param
        self._settle(write, WriteState.REFUSED, signals.write_refused)

    def ambiguous(
        self, write: WriteIntent, chunk: WriteChunk | None, verdict: Verdict, *, claimed: Sequence[str] = ()
    ) -> None:
        """The evidence did not decide: the session waits for an operator.

        `claimed`: ids that a reply gave to items of the chunk; they are kept, though what is stored there differs.
        """
        if chunk is not None:
            chunk.move(WriteState.AMBIGUOUS)
            chunk.remote_ids = list(claimed) or chunk.remote_ids
            chunk.save(update_fields=["state", "remote_ids"], using=self.using)
        write.move(WriteState.AMBIGUOUS)
        write.error_code, write.hold_code, write.next_attempt_at = verdict.value, HoldCode.NONE, None
        write.save(update_fields=["state", "error_code", "hold_code", "next_attempt_at"], using=self.using)
        announce(signals.write_ambiguous, write, using=self.using)

    def cancel(self, write: WriteIntent) -> None:
        """Drop what of the write was not applied, for the cause that was recorded with the request to cancel."""
        write.cancel_cause = write.cancel_cause or CancelCause.OPERATOR
        if write.resolution == Resolution.ROLLBACK:
            write.items_saved = 0
        drop_chunks(write.chunks.db_manager(self.using).all(), self.now)
        self._settle(write, WriteState.CANCELLED, None)

    def record_reconciliation(
        self, write: WriteIntent, chunk: WriteChunk | None, verdict: Verdict, evidence: dict[str, Any]
    ) -> None:
        """Keep the evidence and what was concluded from it."""
        Reconciliation(write=write, chunk=chunk, verdict=verdict, evidence=evidence).save(
            force_insert=True, using=self.using
        )

    def _settle(self, write: WriteIntent, state: WriteState, signal: Signal | None) -> None:
        write.move(state)
        is_partly_saved = write.kind == WriteKind.APPEND and 0 < write.items_saved < write.items_total
        if is_partly_saved and write.cancel_cause != CancelCause.CLEAR:
            write.half_pairs = half_pairs_of(write, using=self.using)
        write.settled_at, write.hold_code, write.next_attempt_at = self.now, HoldCode.NONE, None
        self._head = None
        fields = [
            "state", "settled_at", "hold_code", "next_attempt_at", "cancel_cause", "error_code", "error_param",
            "items_saved", "half_pairs",
        ]  # fmt: skip
        write.save(update_fields=fields, using=self.using)
        if signal is not None:
            announce(signal, write, using=self.using)

    # -- removals ------------------------------------------------------------------------------------------------

    def pop_found(self, write: WriteIntent, item: dict[str, Any], previous_id: str) -> None:
        """Journal which item a pop removes, and that `previous_id` (empty: none) is now the last one known."""
        write.target_id, write.popped = item["id"], item
        write.save(update_fields=["target_id", "popped"], using=self.using)
        self.session.tail_anchor = previous_id

    def clear_found(self, write: WriteIntent) -> None:
        """Journal which conversation a clear deletes."""
        write.target_id = self.session.conversation_id or ""
        write.save(update_fields=["target_id"], using=self.using)

    def items_doomed(self, write: WriteIntent, ids: Sequence[str]) -> None:
        """Journal which items an erasing clear deletes next; it counts them as its items."""
        write.doomed_ids = list(ids)
        write.items_total += len(ids)
        self.clear_hold(write, also=["doomed_ids", "items_total"])

    def doomed_deleted(self, write: WriteIntent, item_id: str) -> None:
        """One of the items that a removal, an erasing clear or an operator's resolution deletes is gone."""
        write.doomed_ids = [doomed for doomed in write.doomed_ids if doomed != item_id]
        write.items_saved += write.kind == WriteKind.CLEAR
        self.clear_hold(write, also=["doomed_ids", "items_saved"])
        if self.session.tail_anchor == item_id:
            self.session.tail_anchor = None

    # -- the session ---------------------------------------------------------------------------------------------

    def metadata_set(self, write: WriteIntent) -> None:
        """The session's metadata is what `write` sets, in the remote conversation too if there is one."""
        self.session.metadata = write.metadata
        ConversationSession.objects.using(self.using).filter(pk=self.session.pk).update(metadata=write.metadata)

    def is_anothers(self, conversation_id: str) -> bool:
        """Whether another session stands for this conversation already."""
        others = ConversationSession.objects.using(self.using).exclude(pk=self.session.pk)
        return others.filter(conversation_id=conversation_id).exists()

    def conversation_created(self, conversation_id: str) -> None:
        """The session has a remote conversation now, known to be empty."""
        self.session.conversation_id, self.session.tail_anchor = conversation_id, ""

    def tail_read(self, last_id: str) -> None:
        """`last_id` (empty: none) is an item known to precede whatever is sent from now on."""
        self.session.tail_anchor = last_id

    def session_cleared(self, write: WriteIntent) -> None:
        """The session has no remote conversation any more; what was begun before can never land in the next one."""
        if write.erase:
            erase_content(write, self.now, using=self.using)
        self.session.conversation_id, self.session.tail_anchor = None, None
        self.session.generation += 1
        self._inherit_metadata()
        send = functools.partial(
            signals.session_cleared.send_robust,
            sender=ConversationSession,
            session_id=self.session.pk,
            generation=self.session.generation,
        )
        transaction.on_commit(send, using=self.using)

    def _inherit_metadata(self) -> None:
        """The next conversation gets the metadata that a change superseded by the clear was to set."""
        changes = WriteIntent.objects.using(self.using).filter(session_id=self.session.pk, kind=WriteKind.METADATA)
        superseded = Q(state=WriteState.CANCELLED, cancel_cause=CancelCause.CLEAR)
        newest = changes.filter(superseded | Q(state=WriteState.SAVED)).order_by("-sequence").first()
        if newest is not None and newest.state == WriteState.CANCELLED:
            self.metadata_set(newest)

    def release(self, wake_at: dt.datetime | None, *, ring: bool = False) -> None:
        """Give the lease back; the sweep looks again at `wake_at` (None: there is nothing to do); `ring`: at once."""
        self.session.lease_token, self.session.lease_expires_at, self.session.wake_at = None, None, wake_at
        self._released = True
        if ring:
            enqueue.wake(self.session.pk, using=self.using)

    def close(self) -> None:
        """Write the session's row back: the last statement of a turn. Raises LeaseLost if the lease is not ours."""
        session = self.session
        if not self._released:
            lasting = dt.timedelta(seconds=conf.REQUEST_TIMEOUT + conf.LEASE_GRACE)
            # Another one each turn, however coarse the clock: by it `leases.in_turn` tells what was committed.
            lasting += dt.timedelta(microseconds=self.now + lasting == self._expired_at)
            session.lease_expires_at = session.wake_at = self.now + lasting
        # The condition is the row lock of databases that have none (SQLite without BEGIN IMMEDIATE).
        changed = (
            ConversationSession.objects.using(self.using)
            .filter(pk=session.pk, lease_token=self._token)
            .update(
                conversation_id=session.conversation_id,
                generation=session.generation,
                tail_anchor=session.tail_anchor,
                lease_token=session.lease_token,
                lease_expires_at=session.lease_expires_at,
                wake_at=session.wake_at,
                version=F("version") + 1,
                updated_at=self.now,
            )
        )
        if not changed:
            raise LeaseLost(f"session {session.pk} was taken over")


def announce(signal: Signal, write: WriteIntent, *, using: str) -> None:
    """Send a signal about `write` after the commit of the caller's transaction."""
    send = functools.partial(signal.send_robust, sender=WriteIntent, write_id=write.pk, session_id=write.session_id)
    transaction.on_commit(send, using=using)
