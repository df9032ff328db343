"""An item without what the Conversations API refuses to be sent.

What goes, and why (WIRE.md, "Ids"; openai-agents 0.24 does the same to the first four before it appends):

- `id`, unless the type needs it: the API replaces ids that it does not know, and links items that it does;
- a placeholder `id`, whatever the type: it stands for "no id";
- `provider_data` and what the Agents SDK notes for itself: unknown parameters to the API;
- `created_by`, which the API only gives out;
- nulls at the top level and in content parts: ``status: null`` answers 400, and a null optional says nothing.
"""

from __future__ import annotations

from typing import Any

from convsessions.items.kinds import PART_FIELDS, TABLE, Vocabulary, kind_of

PLACEHOLDER_IDS = ("__fake_id__", "")
"""Ids that stand for none: openai-agents fills in the first for models that have no item ids."""

PRIVATE_FIELDS = frozenset({"provider_data", "created_by"})
PRIVATE_PREFIX = "_agents_"


def sanitise(item: dict[str, Any], types: Vocabulary = TABLE) -> dict[str, Any]:
    """A copy of `item` as the API takes it. Removes fields, changes no value and no order; `item` stays as it was.

    item: one item object of plain JSON data. The copy shares with it the values that needed no change.
    """
    kind = kind_of(item)
    nullable = types.nullable.get(kind, frozenset())
    clean = {
        key: value for key, value in item.items() if not _is_private(key) and (value is not None or key in nullable)
    }
    if kind not in types.keeps_id or clean.get("id") in PLACEHOLDER_IDS:
        clean.pop("id", None)
    for field in PART_FIELDS.get(kind, ()):
        if field in clean:
            clean[field] = _parts(clean[field])
    return clean


def is_unsendable(item: dict[str, Any]) -> bool:
    """Whether `item`, sanitised, is one that the API refuses and the Agents SDK counts as handled without sending it.

    That is a reasoning item with neither its id nor its encrypted content: 400 ``invalid_item`` (O).
    """
    return kind_of(item) == "reasoning" and not item.get("id") and not item.get("encrypted_content")


def _parts(value: Any) -> Any:
    """The content parts in a field: a list of them, a single one, or something else, which stays as it is."""
    if isinstance(value, list):
        return [_part(part) for part in value]
    return _part(value)


def _part(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: field for key, field in value.items() if field is not None and not _is_private(key)}


def _is_private(key: str) -> bool:
    return key in PRIVATE_FIELDS or key.startswith(PRIVATE_PREFIX)
