"""Cutting long work into transactions that each lock one session, and not for long."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Iterator
from typing import TypeVar

Key = TypeVar("Key")


def by_session(
    rows: Iterable[tuple[Key, uuid.UUID, int]], *, most_rows: int, most_items: int
) -> Iterator[tuple[uuid.UUID, list[Key]]]:
    """The keys of `rows` (key, session, number of items) in batches, each with its one session.

    A batch has `most_rows` and about `most_items` at most; a single row may have more items.
    """
    for session_id, of_session in itertools.groupby(sorted(rows, key=lambda row: row[1]), key=lambda row: row[1]):
        batch: list[Key] = []
        items = 0
        for key, _, count in of_session:
            if batch and (len(batch) >= most_rows or items + count > most_items):
                yield session_id, batch
                batch, items = [], 0
            batch.append(key)
            items += count
        yield session_id, batch
