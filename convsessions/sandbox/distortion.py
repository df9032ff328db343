"""What a faulty server makes of a batch before it stores it. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from .behaviour import Item, Prepared


def each(change: Callable[[Item], Item]) -> Callable[[list[Prepared]], list[Prepared]]:
    """`change` for every item of a batch."""
    return lambda batch: [replace(prepared, item=change(prepared.item)) for prepared in batch]


def altered(item: Item, suffix: str) -> Item:
    """The item with `suffix` behind its first text; as it is, if it has none."""
    for name in ("output", "arguments", "input"):
        if isinstance(item.get(name), str):
            return {**item, name: item[name] + suffix}
    for name in ("content", "summary"):
        for index, part in _parts(item, name):
            if "text" in part:
                return _with_part(item, name, index, {**part, "text": part["text"] + suffix})
    return item


def without(item: Item, field: str) -> Item:
    """The item without `field`, its own and that of its parts."""
    kept = {name: value for name, value in item.items() if name != field}
    for index, part in _parts(kept, "content"):
        shorter = {name: value for name, value in part.items() if name != field}
        kept = _with_part(kept, "content", index, shorter)
    return kept


def _parts(item: Item, name: str) -> Iterable[tuple[int, Item]]:
    parts: Any = item.get(name)
    found = enumerate(parts) if isinstance(parts, list) else ()
    return [(index, part) for index, part in found if isinstance(part, dict)]


def _with_part(item: Item, name: str, index: int, part: Item) -> Item:
    parts = [part if place == index else other for place, other in enumerate(item[name])]
    return {**item, name: parts}
