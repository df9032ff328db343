"""What the API does to the items that it is sent: refuse them, or rewrite them. Pure functions.

Nothing here is shared with the code that compares histories, so that a test against the sandbox cannot confirm a
mistake that both have in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .errors import ApiError, invalid
from .shapes import ITEMS, PARTS_OF_ROLE, WITHOUT_DEFAULT_STATUS, Shape

MAX_ITEMS = 20
MAX_ID = 64
MAX_TEXT = 10_485_760
"""Characters of one text (documented)."""

Item = dict[str, Any]


@dataclass(frozen=True)
class Prepared:
    """An item that the API takes. `item` has no id; `given_id` is the one that the client sent, or empty."""

    item: Item
    prefix: str
    given_id: str = ""
    is_reference: bool = False

    def stored(self, new_id: str) -> Item:
        """The item under an id, which comes first as in every recording."""
        return {"id": new_id, **self.item}


def prepare_batch(items: Any, *, may_be_empty: bool = False) -> list[Prepared]:
    """The rewritten items of a request, in order. Raises ApiError for the first fault: a batch is atomic (recorded)."""
    if not isinstance(items, list):
        raise invalid("invalid_type", "items", "items must be an array.")
    if not items and not may_be_empty:
        raise invalid("empty_array", "items", "items must have at least one item.")
    if len(items) > MAX_ITEMS:
        raise invalid("array_above_max_length", "items", f"items may have at most {MAX_ITEMS} items.")
    return [prepare(item, f"items[{index}]") for index, item in enumerate(items)]


def prepare(item: Any, where: str) -> Prepared:
    """One item, checked and rewritten. `where` is its path in the request, such as ``items[3]``."""
    if not isinstance(item, dict):
        raise invalid("invalid_type", where, "An item must be an object.")
    kind = _kind(item, where)
    shape = ITEMS[kind]
    _check_fields(item, shape, where)
    given_id = _check_id(item, shape, where)
    _check_call_id(item, where)
    if kind == "reasoning" and not given_id and not item.get("encrypted_content"):
        raise invalid("invalid_item", where, "A reasoning item needs an id or encrypted_content.")
    rewritten = _message(item, where) if kind == "message" else _other(item, kind, where)
    return Prepared(rewritten, shape.prefix, given_id, kind == "item_reference")


def _kind(item: Item, where: str) -> str:
    # Recorded: a message may leave out its type.
    kind = item.get("type", "message" if "role" in item else None)
    if kind is None:
        raise invalid("missing_required_parameter", f"{where}.type", "An item needs a type.")
    if not isinstance(kind, str) or kind not in ITEMS:
        raise invalid("invalid_value", f"{where}.type", "There is no item of this type.")
    return kind


def _check_fields(fields: Item, shape: Shape, where: str) -> None:
    for name, value in fields.items():
        # Reported for `status`: an optional field that is null counts as unknown.
        if name not in shape.known or (value is None and name not in shape.nullable):
            raise invalid("unknown_parameter", f"{where}.{name}", "There is no such parameter here.")
    for name in sorted(shape.required | shape.nullable):
        if name not in fields:
            raise invalid("missing_required_parameter", f"{where}.{name}", "A required parameter is missing.")


def _check_id(item: Item, shape: Shape, where: str) -> str:
    given = item.get("id")
    if given is None:
        if shape.needs_id:
            raise invalid("missing_required_parameter", f"{where}.id", "Items of this type need an id.")
        return ""
    text = _bounded(given, f"{where}.id")
    if not text.startswith(shape.prefix):
        raise invalid("invalid_value", f"{where}.id", f"The id of such an item begins with '{shape.prefix}'.")
    return text


def _check_call_id(item: Item, where: str) -> None:
    if "call_id" in item:
        _bounded(item["call_id"], f"{where}.call_id")


def _bounded(value: Any, where: str, limit: int = MAX_ID) -> str:
    if not isinstance(value, str):
        raise invalid("invalid_type", where, "This must be a string.")
    if len(value) > limit:
        raise invalid("string_above_max_length", where, f"This may have at most {limit} characters.")
    return value


def _other(item: Item, kind: str, where: str) -> Item:
    rest = {name: value for name, value in item.items() if name not in {"id", "type", "status"}}
    for name in ("output", "arguments"):
        if isinstance(rest.get(name), str):
            _bounded(rest[name], f"{where}.{name}", MAX_TEXT)
    return {"type": kind, **_status(item, kind), **rest}


def _status(item: Item, kind: str) -> Item:
    if "status" in item:
        return {"status": item["status"]}
    takes_one = "status" in ITEMS[kind].optional and kind not in WITHOUT_DEFAULT_STATUS
    return {"status": "completed"} if takes_one else {}


def _message(item: Item, where: str) -> Item:
    role = item["role"]
    if not isinstance(role, str) or role not in PARTS_OF_ROLE:
        raise invalid("invalid_value", f"{where}.role", "There is no such role.")
    phase = {"phase": item["phase"]} if "phase" in item else {}
    content = _content(item["content"], role, f"{where}.content")
    return {"type": "message", **_status(item, "message"), "content": content, "role": role, **phase}


def _content(content: Any, role: str, where: str) -> list[Item]:
    """Recorded: a string becomes one text part, an output part for the assistant and an input part for the others."""
    if isinstance(content, str):
        kind = "output_text" if role == "assistant" else "input_text"
        return [_part({"type": kind, "text": content}, role, where)]
    if not isinstance(content, list):
        raise invalid("invalid_type", where, "content must be a string or an array of parts.")
    return [_part(part, role, f"{where}[{index}]") for index, part in enumerate(content)]


def _part(part: Any, role: str, where: str) -> Item:
    if not isinstance(part, dict):
        raise invalid("invalid_type", where, "A part must be an object.")
    kind = part.get("type")
    shape = PARTS_OF_ROLE[role].get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise _wrong_part(where, role)
    _check_fields(part, shape, where)
    if "text" in part:
        _bounded(part["text"], f"{where}.text", MAX_TEXT)
    if kind == "output_text":
        # Recorded for answers of the model; inferred for items that a client sends.
        lists = {"annotations": part.get("annotations", []), "logprobs": part.get("logprobs", [])}
        return {"type": kind, **lists, "text": part["text"]}
    defaults = {"detail": "auto"} if kind == "input_image" else {}
    return {**part, **{name: value for name, value in defaults.items() if name not in part}}


def _wrong_part(where: str, role: str) -> ApiError:
    return invalid("invalid_value", f"{where}.type", f"A message of the {role} has no parts of this type.")
