"""Leases: the claim of one worker on one session.

A lease is a token and an expiry by the database's clock, both in the session's row. A worker takes it under the row
lock and presents the token under the row lock at every later step; a worker that comes back after another one took
over finds a foreign token, raises LeaseLost, and its transaction changes nothing.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connections, transaction

from convsessions.conf import conf
from convsessions.exceptions import LeaseLost
from convsessions.models import ConversationSession
from convsessions.remote import clock

from .locking import lock_session
from .turn import Turn

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRIES = (0.05, 0.25, 1.0)
"""Seconds before a turn is tried again after the database failed it."""


@dataclass(frozen=True, slots=True)
class Lease:
    session_id: uuid.UUID
    token: uuid.UUID
    using: str


Claimed = tuple[Lease, Turn] | None


def claim(session_id: uuid.UUID, *, using: str) -> AbstractContextManager[Claimed]:
    """Take the lease of a session and open the first turn; None when somebody else has it or there is nothing to do.

    Opens a durable transaction of its own: RuntimeError inside another one. Raises SessionNotFound.
    """
    return claim_after(lambda: session_id, using=using)


@contextmanager
def claim_after(record: Callable[[], uuid.UUID | None], *, using: str) -> Iterator[Claimed]:
    """As `claim`, after `record` in the same transaction: what it records and the claim are one commit.

    `record` gives the id of the session, None if there is nothing to claim. When None is yielded, what was recorded
    is committed all the same.
    """
    started = clock.now()
    with transaction.atomic(using=using, durable=True):
        session_id = record()
        if session_id is None:
            yield None
            return
        locked, now = lock_session(session_id, using=using)
        turn = Turn(locked, now, started, using)
        if _is_live(locked, now):
            yield None
        elif turn.head() is None:
            # Its last open write was cancelled without a worker; the sweep need not come again.
            rows = ConversationSession.objects.using(using).filter(pk=session_id, last_sequence=locked.last_sequence)
            rows.update(wake_at=None)
            yield None
        else:
            if locked.lease_token is not None:
                logger.warning("lease_taken_over session=%s", session_id)
            lease = Lease(session_id, uuid.uuid4(), using)
            if not _is_first(locked, now, using):
                yield None
                return
            turn.take(lease.token)
            yield lease, turn
            turn.close()


@contextmanager
def turn(lease: Lease) -> Iterator[Turn]:
    """One step of the worker that holds `lease`: everything recorded in it is committed together, or not at all.

    Opens a durable transaction of its own. Raises LeaseLost when another worker has taken over; then nothing that the
    caller learned may be recorded. An expired lease that nobody has taken is still good, and is renewed.
    """
    started = clock.now()
    with transaction.atomic(using=lease.using, durable=True):
        locked, now = lock_session(lease.session_id, using=lease.using)
        if locked.lease_token != lease.token:
            raise LeaseLost(f"session {lease.session_id} was taken over")
        present = Turn(locked, now, started, lease.using)
        yield present
        present.close()


def in_turn(lease: Lease, work: Callable[[Turn], T]) -> T:
    """Run `work` in a turn and return what it returns; contract as `turn`.

    What is to be recorded is known and costs a reconciliation when it is lost, so a deadlock or a broken connection is
    tried again on a new transaction. Should the commit have gone through although it was reported broken, `work` is
    not run again, which would take what it finds for what it expects: what it returned the first time holds. (Where it
    gave the lease back, LeaseLost.)
    """
    tried: tuple[Turn, T] | None = None
    for pause in (*RETRIES, None):
        try:
            if tried is not None and _is_recorded(tried[0], lease):
                return tried[1]
            with turn(lease) as present:
                returned = work(present)
                tried = present, returned
        except (OperationalError, InterfaceError) as error:
            if pause is None:
                raise
            logger.warning("turn_failed session=%s error=%s", lease.session_id, type(error).__name__)
            connections[lease.using].close_if_unusable_or_obsolete()
            time.sleep(pause)
        else:
            return returned
    raise AssertionError("the last try returns or raises")  # pragma: no cover


def _is_recorded(tried: Turn, lease: Lease) -> bool:
    """Whether the transaction of `tried`, reported broken, was committed: every turn leaves another expiry behind.

    Under the lock, so that a commit which is still under way is waited for.
    """
    with transaction.atomic(using=lease.using, durable=True):
        locked, _ = lock_session(lease.session_id, using=lease.using)
    return (locked.lease_token, locked.lease_expires_at) == (lease.token, tried.session.lease_expires_at)


def renew(lease: Lease) -> None:
    """Extend the lease for one more request, without doing anything else. Contract as `turn`."""
    in_turn(lease, lambda _: None)


def lease_duration() -> dt.timedelta:
    """How long a lease lasts from its last renewal: it outlives the request that was begun with it."""
    return dt.timedelta(seconds=conf.REQUEST_TIMEOUT + conf.LEASE_GRACE)


def _is_first(locked: ConversationSession, now: dt.datetime, using: str) -> bool:
    """Whether the session is as it was read, and from here on nobody else's.

    On SQLite without BEGIN IMMEDIATE the lock was none; a statement that writes is one, and its row count tells.
    """
    if connections[using].features.has_select_for_update:
        return True
    unchanged = ConversationSession.objects.using(using).filter(pk=locked.pk, lease_token=locked.lease_token)
    return bool(unchanged.update(updated_at=now))


def _is_live(locked: ConversationSession, now: dt.datetime) -> bool:
    return locked.lease_expires_at is not None and locked.lease_expires_at > now
