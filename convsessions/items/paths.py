"""Where in an item something is: ``items[3].content[0].text``. A path names fields, never what a caller wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable

from convsessions.items.kinds import FREE_FORM

_FIELD = re.compile(r"[a-z][a-z0-9_]{0,39}")
_INDEX = re.compile(r"\[\d+\]")
_LONGEST = 12
"""Steps of a path that are written out; enough for every field that the API documents."""


def step(key: str) -> str:
    """`key` as it may stand in a path: a name as the API gives its fields, or ``?`` for anything else."""
    return key if _FIELD.fullmatch(key) else "?"


def joined(root: str, trail: Iterable[str | int]) -> str:
    """The path of `trail` below `root`, which may be "". Cut off where it grows too long or where the keys are free."""
    path = root
    for position, key in enumerate(trail):
        if position == _LONGEST:
            return f"{path}..."
        path = below(path, key)
        if key in FREE_FORM:
            break
    return path


def below(path: str, key: str | int) -> str:
    """The path of field or index `key` of the value at `path`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{step(key)}" if path else step(key)


def generic(path: str) -> str:
    """`path` without its indices: ``content[0].text`` becomes ``content[].text``."""
    return _INDEX.sub("[]", path)
