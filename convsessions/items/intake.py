"""From what a caller gave to items that can be sent, or one error that says where and why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from convsessions.exceptions import InvalidItem
from convsessions.items import codec, paths, shapes
from convsessions.items.kinds import TABLE, Vocabulary, kind_of
from convsessions.items.plain import plain_object
from convsessions.items.sanitise import is_unsendable, sanitise

T = TypeVar("T")

UNSENT_ALLOWANCE = 1024 * 1024
"""Bytes by which an item as given may exceed the limit for an item as sent: for ids, nulls and `provider_data`."""


@dataclass(frozen=True, slots=True)
class PreparedItem:
    """One item as it will be sent.

    text: its JSON as `codec.encode` writes it. type: its type, ``message`` if it has none. call_id: "" when none.
    original: its JSON as it was given, where that differs.
    """

    text: str
    type: str
    call_id: str
    original: str | None = None


@dataclass(frozen=True, slots=True)
class Intake:
    """The items of one append.

    items: what to send, in order. digest: of what the caller gave, the same for the same body. omitted: how many
    items are counted as handled and not sent. unknown: the types of `items` that nobody here knows, as a path names
    what it knows not.
    """

    items: list[PreparedItem]
    digest: str
    omitted: int
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is taken.

    max_items: of one append. max_item_bytes: of one item's JSON as sent. types: those that are known.
    refuse_unknown: whether an item of another type is refused. max_stored_bytes: what the database takes of an item
    as sent and as given together, escaped as in an SQL literal; None: any.
    """

    max_items: int
    max_item_bytes: int
    types: Vocabulary = field(default=TABLE, repr=False)
    refuse_unknown: bool = False
    max_stored_bytes: int | None = None


def prepare_items(items: object, rules: Rules) -> Intake:
    """Check `items` and encode them for sending.

    items: list or tuple of mappings, or of objects with ``model_dump`` as pydantic has it.
    Raises InvalidItem, and nothing else for any input; its message names a path and quotes no content.
    """
    given = _listed(items)
    if len(given) > rules.max_items:
        raise InvalidItem("items", f"may be at most {rules.max_items}", code="too_many_items")
    read = [_read(item, f"items[{index}]", rules) for index, item in enumerate(given)]
    sent = [prepared for _, prepared in read if prepared is not None]
    digest = codec.digest(f"[{','.join(text for text, _ in read)}]")
    unknown = frozenset(paths.step(item.type) for item in sent if item.type not in rules.types)
    return Intake(items=sent, digest=digest, omitted=len(read) - len(sent), unknown=unknown)


def _listed(items: object) -> list[Any]:
    """The elements as the list or tuple holds them, whatever a subclass of these makes of iteration."""
    # By type(), because isinstance() believes, and runs, a `__class__` property.
    if issubclass(type(items), list):
        return list.copy(cast("list[Any]", items))
    if issubclass(type(items), tuple):
        return list(tuple.__iter__(cast("tuple[Any, ...]", items)))
    raise InvalidItem("items", "must be a list", code="not_a_list")


def _read(item: object, path: str, rules: Rules) -> tuple[str, PreparedItem | None]:
    """The JSON of an item as given, and the item to send, or None if it is omitted."""
    return _guarded(lambda: _prepare(item, path, rules), path)


def _prepare(item: object, path: str, rules: Rules) -> tuple[str, PreparedItem | None]:
    given = plain_object(item, path=path, limit=rules.max_item_bytes + UNSENT_ALLOWANCE)
    clean = sanitise(given, rules.types)
    text = codec.encode(given)
    if is_unsendable(clean):
        return text, None
    shapes.check(clean, path, rules.types)
    kind = kind_of(clean)
    if rules.refuse_unknown and kind not in rules.types:
        raise InvalidItem(f"{path}.type", "is none of the types that are known here", code="unknown_type")
    # Sanitising only ever removes fields, so equal means untouched: then one encoding serves both.
    sent = text if clean == given else codec.encode(clean)
    if len(sent) > rules.max_item_bytes:
        raise InvalidItem(path, f"is {len(sent)} bytes of JSON, more than {rules.max_item_bytes}", code="too_large")
    original = None if sent is text else text
    if rules.max_stored_bytes is not None and _escaped(sent) + _escaped(original or "") > rules.max_stored_bytes:
        raise InvalidItem(path, "is more than the database takes in one statement", code="too_large")
    return text, PreparedItem(text=sent, type=kind, call_id=_call_id(clean), original=original)


def _escaped(text: str) -> int:
    """Bytes of an SQL literal of JSON in ASCII, as MySQL's client library writes it."""
    return len(text) + text.count("\\") + text.count('"') + text.count("'")


def _call_id(item: dict[str, Any]) -> str:
    given = item.get("call_id")
    return given if isinstance(given, str) else ""


def _guarded(step: Callable[[], T], path: str) -> T:
    """What `step` returns. Anything it raises that is not InvalidItem comes from code of the caller's objects.

    Such an error may quote content, so it is dropped, not chained: ours is raised outside the handler.
    """
    try:
        return step()
    except InvalidItem:
        raise
    except Exception:  # noqa: BLE001, S110 - a mapping, or model_dump, may raise whatever it likes
        pass
    raise InvalidItem(path, "cannot be read as JSON data", code="not_json")
