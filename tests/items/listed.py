"""Items in short, and how a faithful server lists them."""

from __future__ import annotations

import copy
import json
from typing import Any

from convsessions.items.kinds import kind_of

Item = dict[str, Any]


def user(content: Any, **more: Any) -> Item:
    return {"role": "user", "content": content, **more}


def text_part(text: str, kind: str = "input_text") -> Item:
    return {"type": kind, "text": text}


def stored_as(sent: Item, text_kind: str = "input_text") -> Item:
    """What a faithful server lists for `sent`: written for these tests, apart from the code under test."""
    given = {key: value for key, value in copy.deepcopy(sent).items() if value is not None}
    stored = {"type": kind_of(sent), "status": "completed", **given, "id": "x_2"}
    if stored["type"] == "message" and isinstance(stored["content"], str):
        stored["content"] = [{"type": text_kind, "annotations": [], "logprobs": [], "text": stored["content"]}]
    return json.loads(json.dumps(stored))  # type: ignore[no-any-return]


def leaves(value: Any, trail: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every string, number and boolean in `value`."""
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        return [way for key, inner in entries for way in leaves(inner, (*trail, key))]
    return [] if value is None else [trail]


def changed(item: Item, way: tuple[Any, ...]) -> Item:
    """`item` with another value at `way`, of the same type where there is one."""
    altered = copy.deepcopy(item)
    place: Any = altered
    for key in way[:-1]:
        place = place[key]
    old = place[way[-1]]
    place[way[-1]] = not old if isinstance(old, bool) else f"{old}!" if isinstance(old, str) else f"{old}"
    return altered
