"""One row of the table: an item as a caller gives it, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Item = dict[str, Any]

SAME: Any = "as in the column before"


@dataclass(frozen=True)
class Arrives:
    """`given` is recorded and `sent`; the API has it `stored` (ids apart), and reading brings it `back`."""

    name: str
    given: Any
    sent: Item = SAME
    stored: Item = SAME
    back: Item = SAME


@dataclass(frozen=True)
class Omitted:
    """`given` is counted as handled, and nothing is sent."""

    name: str
    given: Any


@dataclass(frozen=True)
class Refused:
    """`given` is refused before anything is recorded."""

    name: str
    given: Any
    path: str
    code: str


@dataclass(frozen=True)
class RefusedByTheApi:
    """`given` is recorded and sent, and the API answers that it does not take it, because of `param`."""

    name: str
    given: Any
    param: str
    code: str


def part(text: str, kind: str = "input_text", **more: Any) -> Item:
    return {"type": kind, "text": text, **more}


def answer(text: str, **more: Any) -> Item:
    """A part of the assistant's text as the API stores it."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text, **more}


def message(role: str, *parts: Item, **more: Any) -> Item:
    """A message as the API stores it."""
    return {"type": "message", "status": "completed", "role": role, "content": list(parts), **more}


def done(item: Item, **more: Any) -> Item:
    return {**item, "status": "completed", **more}
