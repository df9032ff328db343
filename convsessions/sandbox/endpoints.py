"""What each endpoint does, faults apart: a call in, an answer out. No HTTP and no log here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from django.http import QueryDict

from . import store
from .behaviour import Item, Prepared, prepare_batch
from .errors import ApiError, invalid
from .visibility import check_include, visible

METADATA_LIMITS = (16, 64, 512)
"""Pairs, characters of a key, characters of a value (documented)."""


@dataclass(frozen=True)
class Twist:
    """How a fault bends an operation while it is done."""

    transform: Callable[[list[Prepared]], list[Prepared]] = lambda batch: batch
    hide_newest: int = 0
    ignore_cursor: bool = False


@dataclass(frozen=True)
class Call:
    """One request to an endpoint: ids from its path, its query, its body in bytes."""

    conversation_id: str
    item_id: str
    query: QueryDict
    body: bytes
    twist: Twist = field(default_factory=Twist)

    def payload(self, *, known: set[str]) -> dict[str, Any]:
        """The body as an object with no other fields than `known`. Raises ApiError."""
        try:
            value = json.loads(self.body or b"{}", parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            # Reported: 400 `invalid_json`. The decoder's message may quote content, so it goes nowhere.
            raise invalid("invalid_json", None, "The body is not valid JSON.") from error
        if not isinstance(value, dict):
            raise invalid("invalid_type", None, "The body must be an object.")
        if unknown := value.keys() - known:
            raise invalid("unknown_parameter", min(unknown), "There is no such parameter.")
        return value

    def include(self) -> frozenset[str]:
        return check_include(self.query.getlist("include[]") + self.query.getlist("include"))


@dataclass(frozen=True)
class Answer:
    """A reply to be. `applied`: it changed a conversation."""

    body: dict[str, Any]
    status: int = 200
    applied: bool = False
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def refusal(cls, error: ApiError) -> Answer:
        return cls(error.body, error.status, headers=error.headers)


def create_conversation(call: Call) -> Answer:
    """Recorded: answers the conversation without its items. An empty list of items is none (the SDK sends it)."""
    payload = call.payload(known={"items", "metadata"})
    metadata = _metadata(payload.get("metadata"))
    batch = prepare_batch(payload.get("items") or [], may_be_empty=True)
    return Answer(store.create(metadata, call.twist.transform(batch)).as_json(), applied=True)


def retrieve_conversation(call: Call) -> Answer:
    return Answer(store.find(call.conversation_id).as_json())


def update_conversation(call: Call) -> Answer:
    payload = call.payload(known={"metadata"})
    if "metadata" not in payload:
        raise invalid("missing_required_parameter", "metadata", "metadata is missing.")
    metadata = _metadata(payload["metadata"])
    return Answer(store.set_metadata(call.conversation_id, metadata).as_json(), applied=True)


def delete_conversation(call: Call) -> Answer:
    store.delete(call.conversation_id)
    body = {"id": call.conversation_id, "object": "conversation.deleted", "deleted": True}
    return Answer(body, applied=True)


def append_items(call: Call) -> Answer:
    """Recorded: answers the batch as a list in its inner order, rewritten, with ``has_more`` false."""
    payload = call.payload(known={"items"})
    if "items" not in payload:
        raise invalid("missing_required_parameter", "items", "items is missing.")
    include = call.include()
    batch = call.twist.transform(prepare_batch(payload["items"]))
    return Answer(_listing(store.append(call.conversation_id, batch), include), applied=True)


def list_items(call: Call) -> Answer:
    """Documented: newest first, 20 a page, unless asked otherwise."""
    order = call.query.get("order", "desc")
    if order not in {"asc", "desc"}:
        raise invalid("invalid_value", "order", "order is asc or desc.")
    page = store.page(
        call.conversation_id,
        descending=order == "desc",
        limit=_limit(call.query.get("limit", "20")),
        after="" if call.twist.ignore_cursor else call.query.get("after", ""),
        hide_newest=call.twist.hide_newest,
    )
    return Answer(_listing(page.items, call.include(), has_more=page.has_more))


def retrieve_item(call: Call) -> Answer:
    include = call.include()
    return Answer(visible(store.find_item(call.conversation_id, call.item_id), include))


def delete_item(call: Call) -> Answer:
    """Answers the conversation. Recorded bodies differ between 2025 and 2026: clients must ignore it."""
    return Answer(store.delete_item(call.conversation_id, call.item_id).as_json(), applied=True)


def shortened(answer: Answer) -> Answer:
    """The same list without its last item; anything else as it is."""
    data = answer.body.get("data")
    return replace(answer, body=_list_body(data[:-1], has_more=False)) if data else answer


def empty_page(answer: Answer) -> Answer:
    return replace(answer, body=_list_body([], has_more=True))


def endless(answer: Answer) -> Answer:
    return replace(answer, body={**answer.body, "has_more": True})


def _listing(items: list[Item], include: frozenset[str], *, has_more: bool = False) -> dict[str, Any]:
    return _list_body([visible(item, include) for item in items], has_more=has_more)


def _list_body(data: list[Item], *, has_more: bool) -> dict[str, Any]:
    """Recorded: both ids are null in an empty list."""
    first_id, last_id = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"object": "list", "data": data, "first_id": first_id, "has_more": has_more, "last_id": last_id}


def _limit(text: str) -> int:
    try:
        limit = int(text)
    except ValueError as error:
        raise invalid("invalid_type", "limit", "limit must be an integer.") from error
    if limit > 100:
        raise invalid("integer_above_max_value", "limit", "limit is at most 100.")
    if limit < 1:
        raise invalid("integer_below_min_value", "limit", "limit is at least 1.")
    return limit


def _metadata(value: Any) -> dict[str, str]:
    pairs, key_length, value_length = METADATA_LIMITS
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise invalid("invalid_type", "metadata", "metadata must be an object of strings.")
    if len(value) > pairs:
        raise invalid("object_above_max_properties", "metadata", f"metadata has at most {pairs} pairs.")
    for key, text in value.items():
        if len(key) > key_length or len(text) > value_length:
            raise invalid("string_above_max_length", "metadata", "A key or value of metadata is too long.")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
