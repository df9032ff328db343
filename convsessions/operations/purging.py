"""Retention: the content of settled writes goes after a time; digests, ids and states stay."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from django.utils import timezone

from convsessions.conf import conf
from convsessions.delivery.evidence import RIVAL_WINDOW
from convsessions.exceptions import InvalidInput, SessionNotFound
from convsessions.journal.locking import alias
from convsessions.journal.purging import kept, purge, purgeable

from .batches import by_session

LOOK = 1000
"""Writes that are looked at together."""
BATCH_WRITES, BATCH_ITEMS = 100, 20_000
"""Writes, and about as many items, that are purged in one transaction: their session is locked for that time."""
STILL_NEEDED = 2 * RIVAL_WINDOW
"""How long after it settled a write is needed to tell its items from those of others, with a margin for clocks."""


@dataclass(frozen=True, slots=True)
class Purged:
    """`writes`: that were purged, or would be; `kept`: refused ones that stay, for they may be tried again."""

    writes: int
    kept: int
    before: dt.datetime


def purge_payloads(
    days: float | None = None,
    *,
    refused: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Purged:
    """Remove the content of writes that settled more than `days` days ago, by default RETENTION_DAYS.

    Open writes keep theirs, ambiguous ones included, and so do those that settled within the last two hours, with which
    an outcome may still be decided, and refused writes that may be tried again, unless `refused` is true; purged, they
    no longer can. `progress` is called with the number of writes done and their total. In short transactions of its
    own, one session each. Raises InvalidInput without a number of days.
    """
    days = conf.RETENTION_DAYS if days is None else days
    if not isinstance(days, int | float) or not days >= 0:
        raise InvalidInput("days", "give a number of days, or set RETENTION_DAYS")
    using, before = alias(), _before(days)
    total = purgeable(before, refused=refused, using=using).count()
    left = 0 if refused else kept(before, using=using).count()
    done = total if dry_run else 0
    while not dry_run and (number := _purge_some(before, refused, using)):
        done += number
        progress(done, total)
    return Purged(done, left, before)


def _before(days: float) -> dt.datetime:
    try:
        return timezone.now() - max(dt.timedelta(days=days), STILL_NEEDED)
    except OverflowError:
        raise InvalidInput("days", "give a smaller number of days") from None


def _purge_some(before: dt.datetime, refused: bool, using: str) -> int:
    longest_ago = purgeable(before, refused=refused, using=using).order_by("settled_at")
    rows = list(longest_ago.values_list("pk", "session_id", "items_total")[:LOOK])
    done = 0
    for session_id, write_ids in by_session(rows, most_rows=BATCH_WRITES, most_items=BATCH_ITEMS):
        try:
            done += purge(session_id, write_ids, before, refused=refused, using=using)
        except SessionNotFound:  # the host deleted it meanwhile
            continue
    return done
