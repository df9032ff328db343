"""Whether a sanitised item has the shape that its type requires, as far as `kinds` knows the type."""

from __future__ import annotations

from typing import Any

from convsessions.exceptions import InvalidItem
from convsessions.items import paths
from convsessions.items.kinds import (
    MESSAGE,
    PART_FIELDS,
    PARTS,
    REFUSED_PARTS,
    ROLES,
    TABLE,
    UNTYPED_PARTS,
    Fields,
    Vocabulary,
    kind_of,
)

_JSON_KINDS: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def check(item: dict[str, Any], path: str, types: Vocabulary = TABLE) -> None:
    """Raise InvalidItem unless `item` (sanitised, plain JSON data) can be sent. `path` is that of the item."""
    kind = _checked_kind(item, path)
    _check_fields(item, types.required.get(kind, {}), path)
    if kind == MESSAGE and item["role"] not in ROLES:
        raise InvalidItem(f"{path}.role", f"must be one of {', '.join(sorted(ROLES))}", code="unknown_role")
    role = item["role"] if kind == MESSAGE else ""
    for field in PART_FIELDS.get(kind, ()):
        if isinstance(item.get(field), list):
            _check_parts(item[field], role, f"{path}.{field}", typed=kind not in UNTYPED_PARTS)


def _checked_kind(item: dict[str, Any], path: str) -> str:
    kind = kind_of(item)
    if kind:
        return kind
    if "type" in item:
        raise InvalidItem(f"{path}.type", "must be a string that names a type", code="invalid_type")
    raise InvalidItem(f"{path}.type", "is missing", code="missing")


def _check_fields(value: dict[str, Any], required: Fields, path: str) -> None:
    for field, kinds in required.items():
        if field not in value:
            raise InvalidItem(paths.below(path, field), "is missing", code="missing")
        if _JSON_KINDS[type(value[field])] not in kinds:
            raise InvalidItem(paths.below(path, field), f"must be of type {' or '.join(kinds)}", code="invalid_type")


def _check_parts(parts: list[Any], role: str, path: str, *, typed: bool) -> None:
    for index, part in enumerate(parts):
        where = paths.below(path, index)
        if not isinstance(part, dict):
            raise InvalidItem(where, "must be an object", code="invalid_part")
        if not typed:
            continue
        kind = part.get("type")
        if not isinstance(kind, str):
            raise InvalidItem(f"{where}.type", "must name the type of the part", code="invalid_part")
        if (role, kind) in REFUSED_PARTS:
            raise InvalidItem(where, f"a message of role {role} cannot hold a part of type {kind}", code="invalid_part")
        _check_fields(part, PARTS.get(kind, {}), where)
