"""The journal's items beside the remote's, row by row from the anchor on. Pure: it is given what was read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import Any

from convsessions.items.comparison import contained, core

Item = dict[str, Any]

NEIGHBOURS = 2
"""Rows of others that are shown at each end of a longer stretch of them."""


class Mark(StrEnum):
    """What a row is."""

    FOUND = "found"
    ALTERED = "altered"
    MISSING = "missing"
    UNREAD = "unread"
    EXTRA = "extra"
    OTHER = "other"
    FOREIGN = "foreign"
    GAP = "gap"


OTHERS = (Mark.OTHER, Mark.FOREIGN)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `index`: of the sent item in its chunk, None for a remote item that is not ours.

    `copy`: 1 for the first extra copy; `owner`: the write that a remote item is bound to; `like`: the index of the
    sent item that a foreign item equals; `ids`: those of a gap.
    """

    mark: Mark
    index: int | None = None
    remote_id: str = ""
    sent: Item | None = field(default=None, repr=False)
    stored: Item | None = field(default=None, repr=False)
    copy: int = 0
    owner: Any = None
    like: int | None = None
    ids: Sequence[str] = ()


def align(
    sent: Sequence[Item],
    history: Sequence[Item],
    *,
    runs: Sequence[Sequence[str]] = (),
    parts: Collection[str] = (),
    claimed: Sequence[str] = (),
    owners: Mapping[str, Any] | None = None,
) -> list[Row]:
    """Rows in the order of the remote history, the missing items where they belong; others' long stretches cut.

    `history`: stored items after the anchor; `runs`: ids of whole appearances of `sent`, the first of which is kept;
    `parts`: ids of items that look like ours; `claimed`: ids that a reply gave, in the order of `sent`; `owners`: what
    other ids are bound to.
    """
    ours = _places(sent, history, runs, parts, claimed)
    rows = [_remote_row(sent, item, ours, owners or {}) for item in history]
    return _folded(_with_missing(sent, rows))


def unread(sent: Sequence[Item]) -> list[Row]:
    """The rows while nothing is known of the remote."""
    return [Row(Mark.UNREAD, index, sent=item) for index, item in enumerate(sent)]


def _places(
    sent: Sequence[Item],
    history: Sequence[Item],
    runs: Sequence[Sequence[str]],
    parts: Collection[str],
    claimed: Sequence[str],
) -> dict[str, tuple[int, int]]:
    """For each remote id that is ours: the index of its item, and which copy it is (0: the one that is kept)."""
    if runs:
        return {one: (index, copy) for copy, run in reversed(list(enumerate(runs))) for index, one in enumerate(run)}
    places = {one: (index, 0) for index, one in enumerate(claimed) if one in parts and index < len(sent)}
    cores = [core(item) for item in sent]
    for item in history:
        if item["id"] in parts and item["id"] not in places:
            alike = [at for at, one in enumerate(cores) if one == core(item) or item["id"] == sent[at].get("id")]
            taken = {index for index, _copy in places.values()}
            free = [index for index in alike if index not in taken]
            if alike:
                places[item["id"]] = (free[0], 0) if free else (alike[0], 1)
    return places


def _remote_row(
    sent: Sequence[Item], item: Item, ours: Mapping[str, tuple[int, int]], owners: Mapping[str, Any]
) -> Row:
    remote_id = item["id"]
    if remote_id in ours:
        index, copy = ours[remote_id]
        mark = Mark.FOUND if contained(sent[index], item) else Mark.ALTERED
        return Row(Mark.EXTRA if copy else mark, index, remote_id, sent[index], item, copy)
    if remote_id in owners:
        return Row(Mark.OTHER, remote_id=remote_id, stored=item, owner=owners[remote_id])
    like = next((index for index, mine in enumerate(sent) if contained(mine, item)), None)
    return Row(Mark.FOREIGN, remote_id=remote_id, stored=item, like=like)


def _with_missing(sent: Sequence[Item], rows: Sequence[Row]) -> list[Row]:
    """`rows`, and each sent item that has none behind the one that was sent before it."""
    at = {row.index: number for number, row in enumerate(rows) if row.index is not None and not row.copy}
    behind: dict[int, list[Row]] = defaultdict(list)
    for index, item in enumerate(sent):
        if index not in at:
            before = next((at[earlier] for earlier in range(index - 1, -1, -1) if earlier in at), -1)
            behind[before].append(Row(Mark.MISSING, index, sent=item))
    return [*behind[-1], *(one for number, row in enumerate(rows) for one in (row, *behind[number]))]


def _folded(rows: Sequence[Row]) -> list[Row]:
    """`rows` with one row for the middle of each long stretch of others' items."""
    folded: list[Row] = []
    for of_others, group in groupby(rows, key=lambda row: row.mark in OTHERS and row.like is None):
        stretch = list(group)
        middle = stretch[NEIGHBOURS:-NEIGHBOURS]
        if of_others and len(middle) > 1:
            gap = replace(middle[0], mark=Mark.GAP, remote_id="", stored=None, ids=[row.remote_id for row in middle])
            stretch = [*stretch[:NEIGHBOURS], gap, *stretch[-NEIGHBOURS:]]
        folded += stretch
    return folded
