"""Changing keys: stored content comes under the newest one, so that old ones can go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from convsessions import ciphers
from convsessions.conf import conf
from convsessions.exceptions import InvalidInput, SessionNotFound
from convsessions.journal.encrypting import HOLDERS, Fate, Holder, examine, rewrite
from convsessions.journal.locking import alias

from .batches import by_session

LOOK = 500
"""Rows that are looked at together."""
BATCH_ROWS, BATCH_ITEMS = 20, 400
"""Rows, and about as many items, that are written in one transaction: their session is locked for that time."""


@dataclass(frozen=True, slots=True)
class Encrypted:
    """Numbers of rows, chunks and popped items together.

    `rewritten`: that were written anew, or would be; `current`: that were under the newest key; `unreadable`: that no
    present key reads, and that stay as they are.
    """

    rewritten: int
    current: int
    unreadable: int


def encrypt_content(
    *, dry_run: bool = False, progress: Callable[[int, int], None] = lambda done, total: None
) -> Encrypted:
    """Write what the journal holds of content anew under the newest key, and encrypt what was stored as it is.

    Run it once every process has the new key first: what another one records under an old key meanwhile may be missed.
    It may be broken off, and run again: what is under the newest key already is only read. Writes may be delivered at
    the same time. `progress` is called with the number of rows done and their total. In short transactions of its own,
    one session each. Raises InvalidInput without a CIPHER, ContentUnreadable where it cannot encrypt.
    """
    if conf.CIPHER is None:
        raise InvalidInput("CIPHER", "there is none, so that nothing can be encrypted; set it in CONVSESSIONS")
    ciphers.seal("[]")  # a broken cipher is told before anything is done
    using = alias()
    total = sum(holder.rows(using=using).count() for holder in HOLDERS)
    fates: Counter[Fate] = Counter()
    for holder in HOLDERS:
        for rows in _looks(holder, using):
            for session_id, keys in by_session(rows, most_rows=BATCH_ROWS, most_items=BATCH_ITEMS):
                try:
                    fates += (
                        examine(holder, keys, using=using)
                        if dry_run
                        else rewrite(holder, session_id, keys, using=using)
                    )
                except SessionNotFound:  # the host deleted it meanwhile
                    continue
                progress(fates.total(), total)
    return Encrypted(fates[Fate.REWRITTEN], fates[Fate.CURRENT], fates[Fate.UNREADABLE])


def _looks(holder: Holder, using: str) -> Iterator[list[tuple[Any, Any, int]]]:
    """All rows with content in the order of their primary key, LOOK at a time."""
    rows = holder.rows(using=using).order_by("pk").values_list("pk", holder.session, holder.items)
    some = list(rows[:LOOK])
    while some:
        yield some
        some = list(rows.filter(pk__gt=some[-1][0])[:LOOK])
