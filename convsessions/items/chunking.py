"""Items cut into requests: small enough for the API, and with what belongs together in one request where it fits.

A call and its output, or a reasoning item and the item it led to, that end up in two requests are half a thought when
the second one fails. So neighbours that are bound to each other share a chunk, unless they are too many for one.

- A reasoning item is bound to the item after it.
- An item with a `call_id` is bound to the next ``*_output`` with the same `call_id`, if only calls, outputs and
  reasoning stand between the two: several parallel calls followed by their outputs are one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from convsessions.items.intake import PreparedItem
from convsessions.items.kinds import REASONING


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive items of one append, for one request.

    first_item: position of its first item in the append, from 0. item_count: at least 1. payload: JSON array text.
    original: JSON array text of the items as given, null for those that are sent so; None if all of them are.
    """

    first_item: int
    item_count: int
    payload: str
    original: str | None = None


def chunks(items: Iterable[PreparedItem], *, max_items: int, max_bytes: int) -> Iterator[Chunk]:
    """Cut `items` into chunks, in order, reading at most `max_items` + 1 items ahead of what was given out.

    max_items: most items of a chunk, at least 1. max_bytes: most bytes of a payload; an item that alone needs more
    gets a chunk of its own.
    """
    first, current = 0, _Batch(max_items, max_bytes)
    for group in _groups(iter(items), max_items, max_bytes):
        if current.items and not current.fits(group):
            yield _chunk(first, current.items)
            first, current = first + len(current.items), _Batch(max_items, max_bytes)
        current.add(group)
    if current.items:
        yield _chunk(first, current.items)


def cut_evenly(items: Sequence[PreparedItem], count: int) -> Iterator[Chunk]:
    """Cut `items` after every `count` of them, whatever belongs together: as the Agents SDK does."""
    for first in range(0, len(items), count):
        yield _chunk(first, items[first : first + count])


class _Batch:
    """The items of a chunk in the making, and the bytes of its payload."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._max_items, self._max_bytes = max_items, max_bytes
        self.items: list[PreparedItem] = []
        self.size = 1  # the opening bracket; each item adds itself and a comma or the closing bracket

    def fits(self, group: Sequence[PreparedItem]) -> bool:
        count = len(self.items) + len(group)
        return count <= self._max_items and self.size + _size(group) <= self._max_bytes

    def add(self, group: Iterable[PreparedItem]) -> None:
        for item in group:
            self.items.append(item)
            self.size += _bytes(item)


def _chunk(first: int, items: Sequence[PreparedItem]) -> Chunk:
    differ = any(item.original is not None for item in items)
    return Chunk(
        first_item=first,
        item_count=len(items),
        payload=f"[{','.join(item.text for item in items)}]",
        original=f"[{','.join(item.original or 'null' for item in items)}]" if differ else None,
    )


def _size(group: Iterable[PreparedItem]) -> int:
    return sum(map(_bytes, group))


def _bytes(item: PreparedItem) -> int:
    """What it adds to a payload, or to the items as given, which stand in the same row of the journal."""
    return max(len(item.text), len(item.original or "")) + 1


def _groups(items: Iterator[PreparedItem], max_items: int, max_bytes: int) -> Iterator[list[PreparedItem]]:
    """The items in groups that each fit into a chunk; of a group that does not fit, its smaller parts."""
    window: list[PreparedItem] = []
    while True:
        _fill(window, items, max_items, max_bytes)
        if not window:
            return
        length = _group_length(window)
        if not _Batch(max_items, max_bytes).fits(window[:length]):
            length = _reasoning_length(window)
            if not _Batch(max_items, max_bytes).fits(window[:length]):
                length = 1
        yield window[:length]
        del window[:length]


def _fill(window: list[PreparedItem], items: Iterator[PreparedItem], max_items: int, max_bytes: int) -> None:
    """Read on until `window` holds more than a chunk could, so that a group that ends beyond it cannot fit."""
    batch = _Batch(max_items, max_bytes)
    batch.add(window)
    while batch.fits(()):
        following = list(islice(items, 1))
        if not following:
            return
        window += following
        batch.add(following)


def _group_length(window: Sequence[PreparedItem]) -> int:
    """How many items from the front of `window` are bound together, directly or through one another."""
    last = position = 0
    while position <= last:
        last = max(last, _bound_to(window, position))
        position += 1
    return last + 1


def _bound_to(window: Sequence[PreparedItem], position: int) -> int:
    """The position of the last item that the one at `position` is bound to; its own if there is none."""
    item = window[position]
    if item.type == REASONING:
        return min(position + 1, len(window) - 1)
    if not item.call_id or _is_output(item):
        return position
    for later in range(position + 1, len(window)):
        other = window[later]
        if _is_output(other) and other.call_id == item.call_id:
            return later
        if not other.call_id and other.type != REASONING:
            break
    return position


def _is_output(item: PreparedItem) -> bool:
    return item.type.endswith("_output")


def _reasoning_length(window: Sequence[PreparedItem]) -> int:
    """How many items from the front of `window` are reasoning, with the item that follows them."""
    thoughts = next((at for at, item in enumerate(window) if item.type != REASONING), len(window))
    return min(thoughts + 1, len(window)) if thoughts else 1
