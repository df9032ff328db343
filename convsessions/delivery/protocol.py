"""The protocol of delivery: claim, call, settle. Sans-I/O towards the remote: it yields requests and is sent outcomes.

Between two yields it runs short durable transactions on the journal; it never yields inside one. What a process that
dies leaves behind, wherever it dies (SIGKILL, SIGTERM, `SystemExit` of django-q2's task timeout, a lost database
connection):

| # | it dies                                           | the journal says              | the next worker             |
|---|---------------------------------------------------|-------------------------------|-----------------------------|
| A | before the claim is committed                     | write pending, no lease       | begins, once woken          |
| B | after the claim, before the request is sent       | chunk sending, lease runs out | finds it absent, sends      |
| C | while the request is sent or answered             | chunk sending, lease runs out | finds it saved, or absent   |
| D | after the reply, before the settling is committed | chunk sending, lease runs out | finds it saved              |
| E | after settling, with the next request begun       | next chunk sending            | as B                        |
| F | after the last settling, the lease given back     | write saved                   | has nothing to do           |
| G | while it reads the history, or waits              | chunk sending, lease runs out | reads again                 |

For creating a conversation, B to D leave at most an empty orphan; deletions are repeated, and 404 means done.
"""

from __future__ import annotations

import enum
import functools
import logging
import uuid
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from convsessions import enqueue
from convsessions.conf import conf
from convsessions.exceptions import ContentUnreadable, LeaseLost
from convsessions.journal import leases
from convsessions.journal.turn import Turn
from convsessions.models import WriteIntent
from convsessions.reconcile import engine
from convsessions.reconcile.reading import read_history
from convsessions.remote.calls import ListItems, Pause, RemoteCall
from convsessions.remote.outcomes import ALREADY_GONE, Outcome, Then, unknown
from convsessions.states import Operation, OutcomeKind

from . import settling
from .planning import plan
from .steps import LookForCopies, ReadDoomed, ReadNewest, ReadTail, Reconcile, Send, Shift, Step, Wait

logger = logging.getLogger(__name__)


class Ending(enum.StrEnum):
    """Why a delivery ended."""

    NOTHING_TO_DO = "nothing_to_do"
    """No open write, or another worker is at it."""
    DONE = "done"
    """The lease was given back: all is settled, or the head write waits for a time, a person, or the next task."""
    LEASE_LOST = "lease_lost"
    """Another worker took over."""


@dataclass(frozen=True, slots=True)
class Report:
    session_id: uuid.UUID
    ending: Ending
    steps: int = 0


Delivery = Generator[RemoteCall | Pause, Outcome | None, Report]
Requests = Generator[RemoteCall | Pause, Outcome | None, Step | None]


def deliver(
    session_id: uuid.UUID,
    *,
    using: str,
    budget: float | None = None,
    through: int | None = None,
    asked_to_end: Callable[[], bool] = bool,
) -> Delivery:
    """Deliver the open writes of a session in their order, until none can go on or `budget` seconds are over.

    `through`: leave writes with a higher sequence to others; `asked_to_end`: looked at before every step; once it is
    true, the request in flight is settled, and the rest is left to others.
    Yields requests and pauses; is sent the outcome of each request, None for a pause. Raises SessionNotFound;
    RuntimeError where the caller holds a transaction. Whatever a driver throws in here, the journal stays as after a
    crash: the lease is not given back, and runs out.
    """
    budget = conf.DELIVERY_BUDGET if budget is None else budget
    begun = _begin(
        lambda: leases.claim(session_id, using=using),
        lambda lease: Shift(lease, budget, through, asked_to_end),
    )
    return Report(session_id, Ending.NOTHING_TO_DO) if begun is None else (yield from _carry_on(*begun))


def deliver_recorded(
    record: Callable[[], WriteIntent], *, using: str, budget: float, asked_to_end: Callable[[], bool] = bool
) -> Delivery:
    """As `deliver`, of the write that `record` records and of what stands before it: one commit for record and claim.

    For a caller who waits for the write and looks after it; no doorbell rings for it. Where another worker has the
    lease, it is recorded all the same. Raises what `record` raises; then nothing is recorded.
    """
    written: list[WriteIntent] = []

    def recorded() -> uuid.UUID | None:
        written[:] = [record()]
        return None if written[0].settled else written[0].session_id

    with enqueue.doorbells_off():
        begun = _begin(
            lambda: leases.claim_after(recorded, using=using),
            lambda lease: Shift(lease, budget, written[0].sequence, asked_to_end),
        )
    return Report(written[0].session_id, Ending.NOTHING_TO_DO) if begun is None else (yield from _carry_on(*begun))


def _begin(
    claim: Callable[[], AbstractContextManager[leases.Claimed]], begin: Callable[[leases.Lease], Shift]
) -> tuple[Step | None, Shift] | None:
    """Claim a session and plan the first step; None if there is nothing to do.

    Where content turns out to be unreadable, the claim is rolled back whole, and made once more to hold the write.
    """
    unreadable: set[uuid.UUID] = set()
    while True:
        known = set(unreadable)
        try:
            with claim() as claimed:
                if claimed is None:
                    return None
                lease, turn = claimed
                shift = begin(lease)
                shift.unreadable = unreadable
                return plan(turn, shift), shift
        except ContentUnreadable:
            if unreadable == known:
                raise  # not of planning: the caller's own recording failed


def _carry_on(step: Step | None, shift: Shift) -> Delivery:
    session_id = shift.lease.session_id
    try:
        while step is not None:
            shift.steps += 1
            step = yield from _carry_out(step, shift)
    except LeaseLost:
        logger.warning("lease_lost session=%s", session_id)
        return Report(session_id, Ending.LEASE_LOST, shift.steps)
    return Report(session_id, Ending.DONE, shift.steps)


def _carry_out(step: Step, shift: Shift) -> Requests:
    """Do what `step` says, record how it ended, and plan the next one in the same transaction."""
    if isinstance(step, Send):
        return (yield from _send(step, shift))
    if isinstance(step, Reconcile):
        return (yield from _reconcile(step, shift))
    if isinstance(step, LookForCopies):
        return (yield from _look_for_copies(step, shift))
    if isinstance(step, ReadTail | ReadDoomed):
        return (yield from _read_page(step, shift))
    if isinstance(step, ReadNewest):
        return (yield from _read_newest(step, shift))
    return (yield from _wait(step, shift))


def _send(step: Send, shift: Shift) -> Requests:
    shift.seen.forget()
    outcome = yield step.call
    assert outcome is not None  # noqa: S101 - requests are always answered
    if step.call.operation is Operation.DELETE_ITEM and outcome.code == ALREADY_GONE:
        outcome = yield from _confirmed(step, outcome, shift)
    _log(step, outcome, shift)
    return _next(
        shift,
        step,
        lambda turn: settling.settle_request(turn, step, outcome),
        unread=lambda turn: settling.settle_without_content(turn, step, outcome),
    )


def _confirmed(step: Send, gone: Outcome, shift: Shift) -> Generator[RemoteCall | Pause, Outcome | None, Outcome]:
    """`gone`, the 404 to a deletion, where the conversation can be seen: a key of another project finds no item either.

    Else what seeing it ended in; then the deletion is tried again.
    """
    conversation_id = step.call.conversation_id
    seen = yield ListItems(conversation_id=conversation_id, limit=1, not_after=shift.read_deadline())
    assert seen is not None  # noqa: S101 - requests are always answered
    if seen.kind is OutcomeKind.APPLIED:
        return gone
    return seen if seen.then is Then.HOLD else unknown("unconfirmed", status=seen.status, request_id=seen.request_id)


def _reconcile(step: Reconcile, shift: Shift) -> Requests:
    answer = yield from engine.decide(step.question, shift.read_deadline, shift.patience, shift.seen)
    return _next(shift, step, lambda turn: settling.settle_answer(turn, step, answer))


def _look_for_copies(step: LookForCopies, shift: Shift) -> Requests:
    history = yield from read_history(step.conversation_id, step.anchor, shift.read_deadline)
    return _next(shift, step, lambda turn: settling.settle_copies(turn, step, history))


def _read_page(step: ReadTail | ReadDoomed, shift: Shift) -> Requests:
    outcome = yield step.call
    assert outcome is not None  # noqa: S101 - requests are always answered
    if isinstance(step, ReadTail):
        return _next(shift, step, lambda turn: settling.settle_tail(turn, step, outcome))
    return _next(shift, step, lambda turn: settling.settle_doomed(turn, step, outcome))


def _read_newest(step: ReadNewest, shift: Shift) -> Requests:
    newest = yield step.call
    assert newest is not None  # noqa: S101 - requests are always answered
    after_tail = None
    if newest.kind is OutcomeKind.APPLIED and step.tail and step.tail not in newest.ids:
        # Others appended meanwhile, or the tail was deleted, or this read was stale and would pop the wrong item.
        after_tail = yield from read_history(step.call.conversation_id, step.tail, shift.read_deadline)
    return _next(shift, step, lambda turn: settling.settle_newest(turn, step, newest, after_tail))


def _wait(step: Wait, shift: Shift) -> Requests:
    yield Pause(step.seconds)
    return _next(shift, step, _nothing)


def _nothing(turn: Turn) -> None:
    pass


def _next(
    shift: Shift, step: Step, record: Callable[[Turn], None], *, unread: Callable[[Turn], None] = _nothing
) -> Step | None:
    """Record how a step ended and plan the next one: one turn, one commit.

    A turn that needs content which cannot be read is rolled back whole, and done once more without it: `unread` is
    recorded instead where `record` failed, and the write that planning could not read is held.
    """
    while True:
        known = set(shift.unreadable)
        try:
            return leases.in_turn(shift.lease, functools.partial(_work, shift, record))
        except ContentUnreadable:
            if shift.unreadable != known:
                continue
            if record is unread or isinstance(step, Wait):
                raise
            shift.unreadable.add(step.write_id)
            record = unread


def _work(shift: Shift, record: Callable[[Turn], None], turn: Turn) -> Step | None:
    record(turn)
    shift.renewed = turn.started
    return plan(turn, shift)


def _log(step: Send, outcome: Outcome, shift: Shift) -> None:
    level = logging.DEBUG if outcome.kind is OutcomeKind.APPLIED else logging.WARNING
    logger.log(
        level,
        "request_ended session=%s write=%s attempt=%s operation=%s outcome=%s code=%s request_id=%s",
        shift.lease.session_id,
        step.write_id,
        step.attempt_id,
        step.call.operation.value,
        outcome.kind.value,
        outcome.code,
        outcome.request_id,
    )
