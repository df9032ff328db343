"""The remote history against the transcript, item by item. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convsessions.items.comparison import contained

from .transcript import Item


@dataclass(frozen=True, slots=True)
class Comparison:
    """`lost`: items sent that are not there; `duplicates`: stored items that are there once too often; `strangers`:
    stored items that nobody sent; `in_order`: whether what is there stands in the order in which it was sent.
    """

    lost: int
    duplicates: int
    strangers: int
    in_order: bool

    @property
    def is_exact(self) -> bool:
        return self.in_order and not (self.lost or self.duplicates or self.strangers)


def compare(sent: Sequence[Item], stored: Sequence[Item]) -> Comparison:
    """Find each item of `sent` in `stored`: at its own place if it is there, else at the first that is still free."""
    free = dict(enumerate(stored))
    places = [_take(item, free, at) for at, item in enumerate(sent)]
    found = [place for place in places if place is not None]
    left = [any(contained(item, extra) for item in sent) for extra in free.values()]
    return Comparison(
        lost=len(places) - len(found),
        duplicates=left.count(True),
        strangers=left.count(False),
        in_order=found == sorted(found),
    )


def _take(item: Item, free: dict[int, Item], expected: int) -> int | None:
    """Remove the place of `item` from `free` and return it; None if it is nowhere."""
    for place in [expected, *free]:
        if place in free and contained(item, free[place]):
            del free[place]
            return place
    return None
