"""Items of every type as OpenAI's own API document allows them, made from the types of the installed `openai` package.

Every field that the document names occurs, also deep inside, with text that has broken something somewhere before.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItemParam

from convsessions.sandbox.shapes import ITEMS
from tests.items.strategies import ids, json_objects, json_values, messages, texts

Item = dict[str, Any]
Items = st.SearchStrategy[Item]

SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    int: st.integers() | st.sampled_from([2**53 + 1, -(2**200), 10**4000]),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
    object: json_values.filter(lambda value: value is not None),
}


def bare(hint: Any) -> Any:
    while get_origin(hint) in (Annotated, Required, NotRequired):
        hint = get_args(hint)[0]
    return hint


def members(hint: Any) -> Iterator[Any]:
    hint = bare(hint)
    if get_origin(hint) in (Union, types.UnionType):
        for member in get_args(hint):
            yield from members(member)
    else:
        yield hint


@cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value that the document allows for a field of this type."""
    return st.one_of([_values(member) for member in members(hint)])


def _values(hint: Any) -> st.SearchStrategy[Any]:
    origin = get_origin(hint)
    if hint in SCALARS:
        return SCALARS[hint]
    if origin is Literal:
        return st.sampled_from(get_args(hint))
    if isinstance(hint, type) and issubclass(hint, dict):
        return st.deferred(lambda: objects(hint))
    if origin is dict:
        return json_objects if get_args(hint)[1] is object else st.dictionaries(texts, values(get_args(hint)[1]))
    (element,) = get_args(hint)  # a list, an iterable, a sequence
    return st.lists(st.deferred(lambda: values(element)), max_size=2)


@cache
def objects(shape: Any, **special: st.SearchStrategy[Any]) -> Items:
    hints = get_type_hints(shape, include_extras=True)
    fields = {name: special[name] if name in special else values(hint) for name, hint in hints.items()}
    required = {name: field for name, field in fields.items() if get_origin(hints[name]) is Required}
    return st.fixed_dictionaries(required, optional={name: fields[name] for name in fields if name not in required})


def _shapes() -> dict[str, Any]:
    """One shape a type; a message has several, and a strategy of its own."""
    found = {}
    for shape in members(ResponseInputItemParam):
        (kind, *_) = get_args(next(members(get_type_hints(shape)["type"])))
        found[kind] = shape
    return found


SHAPES = _shapes()
KINDS = sorted(SHAPES.keys() - {"item_reference"})
"""A reference names an item that must be there: it is no content of its own."""


def documented(kind: str) -> Items:
    """Items of type `kind` as a caller may have them, with ids of its own and nulls for what is optional."""
    if kind == "message":
        return messages
    prefix = ITEMS[kind].prefix
    of_type = ids.map(lambda text: f"{prefix}_{text}")
    optional_id = of_type if kind == "reasoning" else of_type | st.just("__fake_id__") | st.none()
    needs_id = get_origin(get_type_hints(SHAPES[kind], include_extras=True).get("id")) is Required
    return objects(
        SHAPES[kind], type=st.just(kind), id=of_type if needs_id else optional_id, call_id=ids.map("call_{}".format)
    )


def examples(items: Items, count: int) -> list[Item]:
    """`count` items, fewer where there are no more of a type: made at once, so that one write takes them all."""
    found: list[Item] = []

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(items)
    def collect(item: Item) -> None:
        found.append(item)

    collect()
    return found
