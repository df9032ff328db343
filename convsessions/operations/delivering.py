"""Delivering what is due in one process: many sessions at a time."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.utils import timezone

from convsessions import enqueue
from convsessions.conf import conf
from convsessions.delivery import drivers
from convsessions.delivery.failures import Endings, failed
from convsessions.delivery.protocol import Report
from convsessions.delivery.ready import serve
from convsessions.exceptions import SessionNotFound
from convsessions.journal import heartbeats
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, Heartbeat

adeliver_ready = serve


def work(session_id: uuid.UUID) -> Report:
    """Deliver a session as a worker does: as `deliver`, and with a sign of life for those who look after workers."""
    report = drivers.deliver(session_id)
    heartbeats.beat_now_and_then(Heartbeat.DELIVERY, using=alias())
    return report


def try_to_deliver(session_id: uuid.UUID) -> str:
    """As `work`, for a worker who has other sessions to deliver, too; returns how it ended.

    That is a value of `Ending`, or FAILED where it raised, which is logged. Raises SessionNotFound.
    """
    try:
        return work(session_id).ending.value
    except SessionNotFound:
        raise
    except Exception as error:  # noqa: BLE001 - one that fails must not keep those behind it waiting for ever
        return failed(session_id, error)


def deliver_ready(
    limit: int,
    *,
    first: Iterable[uuid.UUID] = (),
    budget: float | None = None,
    asked_to_end: Callable[[], bool] = bool,
) -> Endings:
    """Deliver what is due, of up to `limit` sessions at a time; contract as `serve`, which is its async twin.

    The event loop is kept for the next call in this thread, and with it the connections to the API. Raises
    RuntimeError inside a transaction or a running event loop.
    """
    drivers.refuse_transaction()
    runner = _runner()
    try:
        endings = runner.run(serve(limit, first=first, budget=budget, asked_to_end=asked_to_end))
    except BaseException:
        # What a task timeout or the like broke off must not go on within the next call.
        _kept.loop = None
        raise
    if endings:
        heartbeats.beat_now_and_then(Heartbeat.DELIVERY, using=alias())
    return endings


@dataclass(slots=True)
class _Loop:
    pid: int
    runner: asyncio.Runner


_kept = threading.local()


def _runner() -> asyncio.Runner:
    kept: _Loop | None = getattr(_kept, "loop", None)
    if kept is None or kept.pid != os.getpid():
        # That of another process is not closed here: the two share its selector.
        _kept.inherited = kept
        _kept.loop = kept = _Loop(os.getpid(), asyncio.Runner())
    return kept.runner


def answer_doorbell(session_id: uuid.UUID) -> None:
    """Deliver the session that rang and others that are due, READY_SESSIONS at a time; contract as `deliver_ready`.

    What is left when the time budget is over is rung for, once: whoever answers serves all that is due.
    """
    deliver_ready(conf.READY_SESSIONS, first=[session_id])
    left = ConversationSession.objects.using(alias()).due(timezone.now()).values_list("pk", flat=True).first()
    if left is not None:
        enqueue.wake(left, using=alias())


@atexit.register
def close_loop() -> None:
    """End the event loop that `deliver_ready` keeps in this thread, with its connections to the API."""
    kept: _Loop | None = getattr(_kept, "loop", None)
    _kept.loop = None
    if kept is not None and kept.pid == os.getpid():
        kept.runner.close()
