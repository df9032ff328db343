"""The types of items that the installed `openai` package knows, read from its own types.

These are generated from OpenAI's API document, so that a newer package knows newer types without a change here.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from openai.types.responses import ResponseInputItemParam

from convsessions.items.kinds import ANY, Fields

_UNIONS = (Union, types.UnionType)
_WRAPPERS = (Annotated, Required, NotRequired)

_KINDS: dict[Any, str] = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}


@cache
def item_types() -> Mapping[str, Fields]:
    """The fields that each type of item requires, `type` apart, with the JSON kinds that each may have."""
    return required_fields(ResponseInputItemParam)


def required_fields(shapes: Any) -> Mapping[str, Fields]:
    """As `item_types`, of a TypedDict or a union of such, by the literal of their `type`.

    Where a type stands for several shapes (a message does), the fields that all of them require.
    """
    found: dict[str, Fields] = {}
    for shape in _members(shapes):
        hints = get_type_hints(shape, include_extras=True)
        required = {
            name: _json_kinds(hint) for name, hint in hints.items() if get_origin(hint) is Required and name != "type"
        }
        for kind in filter(None, _literals(hints["type"])):
            found[kind] = _common(found[kind], required) if kind in found else required
    return types.MappingProxyType(found)


def _members(hint: Any) -> Iterator[Any]:
    """The alternatives that an alias of unions stands for."""
    hint = _bare(hint)
    if get_origin(hint) in _UNIONS:
        for member in get_args(hint):
            yield from _members(member)
    else:
        yield hint


def _bare(hint: Any) -> Any:
    while get_origin(hint) in _WRAPPERS:
        hint = get_args(hint)[0]
    return hint


def _literals(hint: Any) -> list[str]:
    return [value for member in _members(hint) if get_origin(member) is Literal for value in get_args(member)]


def _json_kinds(hint: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for member in _members(hint) for kind in _kinds_of(member)))


def _kinds_of(hint: Any) -> tuple[str, ...]:
    origin = get_origin(hint)
    if origin is Literal:
        return tuple(_KINDS[type(value)] for value in get_args(hint))
    if hint in _KINDS:
        return (_KINDS[hint],)
    if origin is dict or (isinstance(hint, type) and issubclass(hint, dict)):
        return ("object",)
    return ("array",) if origin is not None else ANY


def _common(one: Fields, other: Fields) -> Fields:
    return {name: tuple(dict.fromkeys((*one[name], *other[name]))) for name in one if name in other}
