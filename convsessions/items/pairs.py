"""Items that belong together: a call and its output, a reasoning item and the item it led to.

The API answers 400 to a later request for which it finds a call without its output, or an item without its reasoning
(WIRE.md), so a history that holds one half of a pair may be useless to the model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from convsessions.items.kinds import REASONING, kind_of

Pair = tuple[int, int]


def pairs(items: Sequence[dict[str, Any]]) -> Iterator[Pair]:
    """The positions of every two of `items` (sanitised) that belong together, the earlier one first."""
    calls: defaultdict[str, list[int]] = defaultdict(list)
    for position, item in enumerate(items):
        kind, call_id = kind_of(item), item.get("call_id")
        if kind == REASONING and position + 1 < len(items):
            yield position, position + 1
        if not isinstance(call_id, str) or not call_id:
            continue
        if not kind.endswith("_output"):
            calls[call_id].append(position)
        elif calls[call_id]:
            yield calls[call_id].pop(0), position
