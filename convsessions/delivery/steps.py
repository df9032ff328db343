"""What the protocol does next, as values: planned under the lock, carried out without it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from convsessions.conf import conf
from convsessions.journal import leases
from convsessions.journal.leases import Lease
from convsessions.reconcile.engine import Question, Seen
from convsessions.reconcile.matching import Item
from convsessions.remote import clock
from convsessions.remote.calls import ListItems, RemoteCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A journaled request that changes the remote."""

    call: RemoteCall
    write_id: uuid.UUID
    attempt_id: int
    target_id: str = ""
    chunk_id: int | None = None
    sent: Sequence[Item] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconcile:
    """Find out what became of a chunk."""

    write_id: uuid.UUID
    chunk_id: int
    question: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class LookForCopies:
    """All chunks are saved, but some were sent again: look whether an earlier request landed after all.

    `originals`: per chunk that was sent again, its items and the ids that they have.
    """

    write_id: uuid.UUID
    conversation_id: str
    anchor: str
    originals: Sequence[tuple[Sequence[Item], Sequence[str]]] = field(repr=False)
    bound: frozenset[str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTail:
    """Find an item that is known to precede whatever is sent next."""

    write_id: uuid.UUID
    call: ListItems


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadNewest:
    """Find the item that a pop removes. `tail`: the last item known to us, or nearly; empty: none."""

    write_id: uuid.UUID
    call: ListItems
    tail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDoomed:
    """Find the items that an erasing clear deletes next, or that there are none left."""

    write_id: uuid.UUID
    call: ListItems


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


Step = Send | Reconcile | LookForCopies | ReadTail | ReadNewest | ReadDoomed | Wait


@dataclass(slots=True)
class Shift:
    """One worker's stretch of work on one session: its lease, and how far and how long it may go on.

    `through`: the sequence of the last write that is this worker's business, None for all; `asked_to_end`: whether it
    should go on no further than it must; `unreadable`: writes whose content turned out to be unreadable, and which are
    to be held; `seen`: see `engine.decide`.
    """

    lease: Lease
    budget: float
    through: int | None = None
    asked_to_end: Callable[[], bool] = bool
    unreadable: set[uuid.UUID] = field(default_factory=set)
    seen: Seen = field(default_factory=Seen)
    began: float = field(default_factory=clock.now)
    renewed: float = field(default_factory=clock.now)
    steps: int = 0

    def is_over(self) -> bool:
        """Whether the next step is for another task. The first one never is, so that each task gets on."""
        return self.steps > 0 and (self.asked_to_end() or clock.now() - self.began >= self.budget)

    def concerns(self, sequence: int) -> bool:
        """Whether the write with this sequence is this worker's business."""
        return self.through is None or sequence <= self.through

    def patience(self) -> float:
        """Seconds that may be spent waiting: within the budget, and well within the lease."""
        left = 0.0 if self.asked_to_end() else self.budget - (clock.now() - self.began)
        return max(min(left, conf.REQUEST_TIMEOUT + conf.LEASE_GRACE / 2), 0.0)

    def read_deadline(self) -> float:
        """The `not_after` of a read that begins now; extends the lease so that it outlives the read."""
        if clock.now() - self.renewed > conf.LEASE_GRACE:
            leases.renew(self.lease)
            self.renewed = clock.now()
        return clock.now() + conf.REQUEST_TIMEOUT
