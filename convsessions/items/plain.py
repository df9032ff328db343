"""A caller's object as plain JSON data: exact dicts, lists, strings, numbers, booleans and nulls, and nothing else.

The copy is made in a loop, not by recursion, so that no nesting, cycle or shared reference can exhaust the stack or
the memory, and so that later changes to the caller's object cannot reach what was accepted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from convsessions.exceptions import InvalidItem
from convsessions.items import paths

DEEPEST = 64
"""Objects and arrays inside one another, the item itself included."""

LARGEST_INTEGER = 10**4300
"""Python refuses to read or write an integer of more than 4300 digits (CVE-2020-10735)."""

_Entries = Iterator[tuple[Any, Any]]


def plain_object(given: object, *, path: str, limit: int) -> dict[str, Any]:
    """A deep copy of `given` as plain JSON data.

    given: a mapping, or an object with ``model_dump`` as pydantic has it; the same may stand inside it, tuples too.
    path: of `given`, for messages. limit: bytes of its JSON, as estimated from below while it is read.
    Raises InvalidItem; whatever else `given` may raise while it is read goes through to the caller.
    """
    if not _is_object(given):
        raise InvalidItem(path, "must be an object", code="not_an_object")
    return _Copy(path, limit).of(given)


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping) or (callable(getattr(value, "model_dump", None)) and not isinstance(value, type))


def _entries(value: object) -> _Entries | None:
    """What a container holds, or None if `value` is not one."""
    if isinstance(value, list | tuple):
        return enumerate(value)
    if _is_object(value):
        return iter((value if isinstance(value, Mapping) else _dumped(value)).items())
    return None


def _dumped(model: Any) -> Mapping[Any, Any]:
    """The fields that were set, under their wire names: openai's ``async_`` is ``async`` only by its alias."""
    try:
        dumped = model.model_dump(exclude_unset=True, by_alias=True)
    except TypeError:  # not pydantic: it knows no aliases
        dumped = model.model_dump(exclude_unset=True)
    if not isinstance(dumped, Mapping):
        raise TypeError("model_dump did not return a mapping")
    return dumped


def _is_encodable(text: str) -> bool:
    # Answered as a value, so that the error, which carries the text, is not chained to ours.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Copy:
    """One walk over one item: the containers that are open, the way to them, and what it has cost so far."""

    __slots__ = ("_cost", "_limit", "_open", "_path", "_trail")

    def __init__(self, path: str, limit: int) -> None:
        self._path, self._limit, self._cost = path, limit, 0
        self._open: list[tuple[_Entries, dict[str, Any] | list[Any]]] = []
        self._trail: list[str | int] = []

    def of(self, given: object) -> dict[str, Any]:
        root: dict[str, Any] = {}
        self._enter(_entries(given) or iter(()), root)
        while self._open:
            entries, target = self._open[-1]
            for key, value in entries:
                if self._take(target, key, value):
                    break
            else:
                self._open.pop()
                if self._open:
                    self._trail.pop()
        return root

    def _take(self, target: dict[str, Any] | list[Any], key: Any, value: Any) -> bool:
        """Copy one entry into `target`. True if it is a container, which is now open and comes first."""
        if isinstance(target, dict):
            key = self._key(key)
        self._trail.append(key)
        entries = None if value is None or isinstance(value, str | int | float) else _entries(value)
        copy: Any = self._scalar(value) if entries is None else [] if isinstance(value, list | tuple) else {}
        self._spend(2)  # a byte at least, and the comma or bracket after it
        if isinstance(target, dict):
            target[key] = copy
        else:
            target.append(copy)
        if entries is None:
            self._trail.pop()
            return False
        self._enter(entries, copy)
        return True

    def _enter(self, entries: _Entries, target: dict[str, Any] | list[Any]) -> None:
        if len(self._open) == DEEPEST:
            self._fail(f"is nested more than {DEEPEST} levels deep", "too_deep")
        self._open.append((entries, target))

    def _key(self, key: Any) -> str:
        if not isinstance(key, str):
            self._fail("must have strings as keys", "not_json")
        return self._string(key)

    def _scalar(self, value: Any) -> str | int | float | None:
        """An exact str, bool, int, float or None. Subclasses (enums, numpy's float64) lose what they add to these."""
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, int):
            return self._integer(int.__int__(value))
        if isinstance(value, float):
            return self._float(float.__float__(value))
        return self._fail("must be a JSON value", "not_json")

    def _string(self, value: str) -> str:
        text = str.__str__(value)
        self._spend(len(text))
        if not text.isascii() and not _is_encodable(text):
            self._fail("holds half a surrogate pair, which is no character", "surrogate")
        return text

    def _integer(self, value: int) -> int:
        self._spend(value.bit_length() >> 2)
        if abs(value) >= LARGEST_INTEGER:
            self._fail("has more than 4300 digits", "too_large")
        return value

    def _float(self, value: float) -> float:
        if not math.isfinite(value):
            self._fail("must be a finite number", "not_finite")
        return value

    def _spend(self, cost: int) -> None:
        self._cost += cost
        if self._cost > self._limit:
            raise InvalidItem(self._path, "is too large", code="too_large")

    def _fail(self, problem: str, code: str) -> NoReturn:
        raise InvalidItem(paths.joined(self._path, self._trail), problem, code=code)
