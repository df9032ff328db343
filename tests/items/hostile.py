"""What callers may give that is no item, or does not behave as one; and how a test takes items in."""

from __future__ import annotations

import enum
from collections import OrderedDict
from typing import Any

import pytest

from convsessions.exceptions import InvalidItem
from convsessions.items.intake import Intake, Rules, prepare_items

SECRET = "sk-the-content-of-an-item"
KIB = 1024


def prepare(items: object, *, max_items: int = 100, max_item_bytes: int = 64 * KIB, **rules: Any) -> Intake:
    return prepare_items(items, Rules(max_items=max_items, max_item_bytes=max_item_bytes, **rules))


def refusal(items: object, **rules: Any) -> tuple[str, str]:
    with pytest.raises(InvalidItem) as caught:
        prepare(items, **rules)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "the error of the caller's object may quote content"
    return caught.value.field, caught.value.code


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def nested(levels: int) -> list[Any]:
    """Arrays inside one another, `levels` of them."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def doubling(levels: int) -> list[Any]:
    """Arrays of the same array twice: small in memory, 2**levels values as JSON."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value, value]
    return value


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


class Model:
    """What pydantic's models have in common with the ones of a test."""

    def __init__(self, dumped: Any) -> None:
        self.dumped = dumped

    def model_dump(self, *, exclude_unset: bool) -> Any:
        if isinstance(self.dumped, Exception):
            raise self.dumped
        return self.dumped


class HostileMapping(OrderedDict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError(SECRET)


class EndlessMapping(OrderedDict[str, Any]):
    def items(self) -> Any:
        number = 0
        while True:
            yield f"key_{number}", number
            number += 1


class LyingClass:
    @property
    def __class__(self) -> Any:
        raise RuntimeError(SECRET)


class Colour(str, enum.Enum):  # noqa: UP042 - the old spelling is the one that users have
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3
