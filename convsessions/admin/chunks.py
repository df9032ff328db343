"""The chunks of a write as a short table: those with a story of their own alone, the others in ranges."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.utils.safestring import SafeString

from convsessions.models import WriteIntent
from convsessions.states import WriteState

from .display import badge, span

QUIET = (WriteState.PENDING, WriteState.SAVED, WriteState.CANCELLED)
MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One chunk, or `first`..`last` of which there is nothing to tell but their state. Numbers count from 1."""

    first: int
    last: int
    items: str
    badge: SafeString
    attempts: int
    resent: bool
    anchor: str | None
    deadline_at: dt.datetime | None


def chunk_rows(write: WriteIntent) -> list[ChunkRow]:
    """The table of a write's chunks: one query, without payloads and ids."""
    chunks = list(write.chunks.defer("payload", "original", "remote_ids"))
    numbered = list(enumerate(chunks, start=1))
    rows = [_row(list(group)) for _key, group in groupby(numbered, key=_kind)]
    return rows[:MOST_ROWS]


def _kind(numbered: tuple[int, Any]) -> tuple[str, int]:
    """Neighbours of one kind share a row; a chunk with a story is of its own kind."""
    number, chunk = numbered
    quiet = chunk.state in QUIET and chunk.attempts <= 1 and not chunk.resent
    return (chunk.state, 0 if quiet else number)


def _row(group: list[tuple[int, Any]]) -> ChunkRow:
    (first, chunk), (last, end) = group[0], group[-1]
    alone = first == last
    return ChunkRow(
        first=first,
        last=last,
        items=span(chunk.first_item, end.first_item + end.item_count - chunk.first_item),
        badge=badge(chunk.state, chunk.get_state_display()),
        attempts=max(one.attempts for _number, one in group),
        resent=chunk.resent,
        anchor=chunk.anchor if alone else None,
        deadline_at=chunk.deadline_at if alone else None,
    )
