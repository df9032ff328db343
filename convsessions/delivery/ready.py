"""Serving many sessions in one process, at the same time and in turns.

A session has its turn for TURN_SECONDS at most, and then goes behind those that wait: a write of ten thousand items
holds up nobody. Sessions are claimed, and left behind by a process that dies, as by any other worker: their leases run
out.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import Callable, Iterable

from django.utils import timezone

from convsessions import enqueue
from convsessions.conf import conf
from convsessions.exceptions import SessionNotFound
from convsessions.journal.choosing import Turns, reserve
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession
from convsessions.remote import clock

from . import drivers
from .failures import Endings, failed
from .protocol import Ending
from .threads import in_thread, refuse_transaction

TURN_SECONDS = 2.0
"""Seconds after which a session begins no further request while it has its turn."""
LOOK_SECONDS = (0.05, 0.25)
"""Seconds between two looks for more sessions while some have their turn: doubled, up to the second, after each look
that found none."""
MOST_AWAITED = 500
"""Of the sessions that had a turn, how many may keep a process waiting for their next one."""
AT_ONCE = 16
"""Sessions that one look takes at most, so that a process does not take what its neighbours could do."""


async def serve(
    limit: int,
    *,
    first: Iterable[uuid.UUID] = (),
    budget: float | None = None,
    asked_to_end: Callable[[], bool] = bool,
) -> Endings:
    """Deliver what is due, of up to `limit` sessions at a time, until nothing is, or for about `budget` seconds.

    `first`: sessions that are served whether they are due or not; `asked_to_end`: once it is true, the requests in
    flight are settled, and the rest is left to others. Sessions that another worker has locked are passed over.
    Raises RuntimeError inside a transaction.
    """
    await refuse_transaction()
    desk, turns = _Desk(limit), Turns()
    desk.begin(first)
    ends, pause = clock.now() + (conf.DELIVERY_BUDGET if budget is None else budget), LOOK_SECONDS[0]
    try:
        while not (asked_to_end() or clock.now() >= ends):
            room = min(desk.free, AT_ONCE)
            found = await in_thread(reserve, room, turns, using=alias()) if room else []
            desk.begin(found)
            pause = min(pause * 2, LOOK_SECONDS[1]) if room and not found else LOOK_SECONDS[0]
            if await desk.wait(pause):
                continue
            # A session that waits for a moment has nobody else who would come before the next sweep.
            if not await in_thread(_is_due_within, ends - clock.now(), desk.endings):
                break
            await asyncio.sleep(LOOK_SECONDS[1])
    finally:
        await drivers.uninterrupted(desk.close(), desk.ending)
    return desk.endings


def _is_due_within(seconds: float, served: Endings) -> bool:
    soon = timezone.now() + dt.timedelta(seconds=min(max(seconds, 0.0), 3600.0))
    of_ours = ConversationSession.objects.using(alias()).filter(pk__in=list(served)[-MOST_AWAITED:])
    return of_ours.filter(lease_token__isnull=True, wake_at__lte=soon).exists()


class _Desk:
    """The sessions that have their turn now."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.ending = asyncio.Event()
        self.endings: Endings = {}
        self._turns: set[asyncio.Task[None]] = set()

    @property
    def free(self) -> int:
        return max(self.limit - len(self._turns), 0)

    def begin(self, session_ids: Iterable[uuid.UUID]) -> None:
        for session_id in session_ids:
            turn = asyncio.create_task(self._turn(session_id))
            self._turns.add(turn)
            turn.add_done_callback(self._turns.discard)

    async def wait(self, seconds: float) -> bool:
        """Wait for `seconds`, or until all turns are over; whether there was anything to wait for."""
        if not self._turns:
            return False
        await asyncio.wait(self._turns, timeout=seconds)
        return True

    async def close(self) -> None:
        """Have the turns end with the request that they are at."""
        self.ending.set()
        if self._turns:
            await asyncio.wait(self._turns)

    async def _turn(self, session_id: uuid.UUID) -> None:
        # Whoever serves looks again by itself. A turn that ends before its session is done is no reason to ring.
        with enqueue.doorbells_off():
            try:
                report = await drivers.adeliver(session_id, budget=TURN_SECONDS, ending=self.ending)
                self.endings[session_id] = report.ending.value
            except SessionNotFound:
                self.endings[session_id] = Ending.NOTHING_TO_DO.value
            except Exception as error:  # noqa: BLE001 - one that fails must not end the turns of the others
                self.endings[session_id] = failed(session_id, error)
