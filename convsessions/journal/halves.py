"""Halves of pairs that an append left in the history without what belongs to them."""

from __future__ import annotations

from typing import Any

from convsessions.items.pairs import pairs
from convsessions.models import WriteIntent
from convsessions.states import WriteState

MAX_HALVES = 100
"""Halves kept in the row of a write."""


def half_pairs_of(write: WriteIntent, *, using: str) -> list[dict[str, Any]]:
    """The items of an append, of which not all was saved, that stand in the history without their other half.

    Each with `item` and `missing`, positions in the write, and its remote `id` and `type`. Reads all of its payload.
    """
    items: list[dict[str, Any]] = []
    ids: dict[int, str] = {}
    for chunk in write.chunks.db_manager(using).defer("original").iterator(chunk_size=20):
        if chunk.state == WriteState.SAVED:
            ids |= enumerate(chunk.remote_ids, chunk.first_item)
        items += chunk.items
    halves = [
        {"item": there, "id": ids[there], "type": items[there].get("type", "message"), "missing": missing}
        for pair in pairs(items)
        for there, missing in (pair, pair[::-1])
        if there in ids and missing not in ids
    ]
    return list({half["id"]: half for half in halves}.values())[:MAX_HALVES]
