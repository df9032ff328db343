"""Whether an item read back from the remote history is the item that was sent.

Both sides are brought to one form first: a missing type is ``message``, a string is one text part, nulls and empty
`annotations` and `logprobs` are nothing. Then every field that was sent must be stored with an equal value: strings
character by character, lists of the same length, ``True`` apart from 1, 1 equal to 1.0. What is stored beyond that
does not count, except in free-form JSON such as a tool's arguments, where one key more is another value. The fields
that the API is known to lose or to add are rows in `rewritings`.

Remote items may hold anything a server sends: no depth, number or string of theirs makes these functions fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from convsessions.items import codec, paths
from convsessions.items.kinds import FREE_FORM, ITEM_REFERENCE, kind_of
from convsessions.items.plain import DEEPEST, LARGEST_INTEGER
from convsessions.items.rewritings import (
    ADDED,
    EMPTY_UNLESS_USED,
    IDENTITY,
    TEXT_OR_PARTS,
    TEXT_PARTS,
    lost_paths,
)

_Pair = tuple[str, Any, Any, bool]
"""Path, what was sent there, what is stored there, and whether both must be equal rather than contained."""

_DEEPEST_FORM = DEEPEST + 2
"""Levels of the longest form of an item that we send: a string there becomes a list with a part."""

_NOTHING: tuple[Any, ...] = (None, [], {})
"""What a lost field may have become, besides being absent."""


def contained(sent: dict[str, Any], stored: dict[str, Any]) -> bool:
    """Whether `stored`, an item read back, holds everything that `sent` does. Neither is changed."""
    return next(_differing(sent, stored), None) is None


def differences(sent: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    """The paths at which `stored` does not hold what was sent, in the order of `sent`; [] if `contained`."""
    return list(dict.fromkeys(_differing(sent, stored)))


def normalised_digest(item: dict[str, Any]) -> str:
    """A digest that an item sent and the same item read back share: 64 hexadecimal digits.

    Leaves out what the API adds (`id`, `status`) or may lose. Two items of equal digest may still differ in these
    fields, and a field that a server adds changes it: equal digests suggest, `contained` decides.
    """
    kind = kind_of(item)
    added = ADDED.keys() - {"id"} if kind == ITEM_REFERENCE else ADDED.keys()
    kept = {key: value for key, value in _form(item).items() if key not in added}
    return codec.digest(codec.encode(_canonical(kept, "", lost_paths(kind))))


def core(item: dict[str, Any]) -> str:
    """A digest of what tells which item this is, and nothing else: 64 hexadecimal digits.

    An item sent and an altered copy of it share it while type, role, call_id, name, arguments and the text in all are
    the same. Different items may share it, too: two images sent by the same role do.
    """
    kind = kind_of(item)
    fields = IDENTITY.get(kind)
    if fields is None:
        identity: list[Any] = [item.get("call_id"), sorted(_strings(item, kind))]
    else:
        identity = [_text(item.get(field)) for field in fields]
    return codec.digest(codec.encode(_canonical([kind, *identity], "", frozenset())))


def _form(item: dict[str, Any]) -> dict[str, Any]:
    """`item` with its type, and with content and output as parts with one name for text; nulls left out."""
    form = {key: value for key, value in item.items() if value is not None}
    form["type"] = kind_of(item)
    field = TEXT_OR_PARTS.get(form["type"], "")
    content = form.get(field)
    if isinstance(content, str):
        form[field] = [{"type": "text", "text": content}]
    elif isinstance(content, list):
        form[field] = [_part_form(part) for part in content]
    return form


def _part_form(part: Any) -> Any:
    if isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in TEXT_PARTS:
        return {**part, "type": "text"}
    return part


def _is_nothing(key: str, value: Any) -> bool:
    return value is None or (key in EMPTY_UNLESS_USED and value == [])


def _differing(sent: dict[str, Any], stored: dict[str, Any]) -> Iterator[str]:
    """The paths of differences. In a loop, because a sent item may come from an older journal with other limits."""
    kind = kind_of(sent)
    if kind == ITEM_REFERENCE:
        # The API links the item that is referred to, whatever its type, under its own id (recorded).
        if sent.get("id") != stored.get("id"):
            yield "id"
        return
    lost = lost_paths(kind)
    pending: list[_Pair] = [("", _without_id(_form(sent)), _form(stored), False)]
    while pending:
        path, ours, theirs, exact = pending.pop()
        if theirs in _NOTHING and paths.generic(path) in lost:
            continue
        if isinstance(ours, dict) and isinstance(theirs, dict):
            if exact and _has_more(theirs, ours):
                yield path
            pending.extend(reversed(_fields(path, ours, theirs, exact)))
        elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
            pending.extend(reversed(_elements(path, ours, theirs, exact)))
        elif not _same_scalar(ours, theirs):
            yield path


def _without_id(form: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in form.items() if key != "id"}


def _has_more(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    return any(value is not None and ours.get(key) is None for key, value in theirs.items())


def _fields(path: str, ours: dict[str, Any], theirs: dict[str, Any], exact: bool) -> list[_Pair]:
    """What was sent in an object, with what is stored in its place. Below free-form JSON the path stays where it is."""
    return [
        (path if exact else paths.below(path, key), value, theirs.get(key), exact or key in FREE_FORM)
        for key, value in ours.items()
        if not _is_nothing(key, value)
    ]


def _elements(path: str, ours: list[Any], theirs: list[Any], exact: bool) -> list[_Pair]:
    return [
        (path if exact else paths.below(path, at), mine, other, exact)
        for at, (mine, other) in enumerate(zip(ours, theirs, strict=True))
    ]


def _same_scalar(ours: Any, theirs: Any) -> bool:
    """Whether both are the same string, number, boolean or null; False for anything else."""
    if ours is None or isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    return isinstance(ours, str | int | float) and isinstance(theirs, str | int | float) and ours == theirs


def _canonical(value: Any, path: str, lost: frozenset[str], depth: int = 0) -> Any:
    """`value` such that equal values have one JSON text: keys sorted, nothings and `lost` paths left out."""
    if depth > _DEEPEST_FORM:
        return ["deeper"]  # than anything that we send, so it equals nothing of ours
    if isinstance(value, dict):
        return {
            key: _canonical(field, _generic_below(path, key), lost, depth + 1)
            for key, field in sorted(value.items())
            if not _is_nothing(key, field) and _generic_below(path, key) not in lost
        }
    if isinstance(value, list):
        return [_canonical(element, f"{path}[]", lost, depth + 1) for element in value]
    return _canonical_number(value) if isinstance(value, int | float) else value


def _canonical_number(value: float) -> Any:
    """1 for 1.0; what JSON or Python cannot write in digits becomes a list that no number is."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return ["number", repr(value)]
        return int(value) if value.is_integer() else value
    return ["number", hex(value)] if abs(value) >= LARGEST_INTEGER else value


def _generic_below(path: str, key: str) -> str:
    return f"{path}.{paths.step(key)}" if path else paths.step(key)


def _text(value: Any) -> Any:
    """The text of all parts in one string if `value` is a list of parts, "" if there is none, `value` otherwise."""
    if not isinstance(value, list):
        return "" if value is None else value
    texts = (part.get("text", part.get("refusal")) for part in value if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _strings(item: dict[str, Any], kind: str) -> Iterator[list[str]]:
    """[path, string] for every string in `item` that the API neither adds nor may lose."""
    lost = lost_paths(kind)
    pending: list[tuple[str, Any]] = [(key, value) for key, value in item.items() if key not in ADDED]
    while pending:
        path, value = pending.pop()
        if path in lost:
            continue
        if isinstance(value, dict):
            pending.extend((_generic_below(path, key), field) for key, field in value.items())
        elif isinstance(value, list):
            pending.extend((f"{path}[]", element) for element in value)
        elif isinstance(value, str):
            yield [path, value]
