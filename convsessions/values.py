"""Checks of the small values that callers give: keys, ids, metadata. Items have `convsessions.items`."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping

from .exceptions import InvalidInput, NotFound

MAX_KEY = 255
MAX_CONVERSATION_ID = 64
MAX_REASON = 10_000
MAX_PAIRS, MAX_NAME, MAX_VALUE = 16, 64, 512
"""Of metadata: pairs, characters of a key, characters of a value (OpenAI's API document)."""


def as_uuid(given: object, missing: type[NotFound]) -> uuid.UUID:
    """The id that a caller gave, as such or as text. Raises `missing` for anything else: nothing has that as its id."""
    try:
        return given if isinstance(given, uuid.UUID) else uuid.UUID(given)  # type: ignore[arg-type]
    except (ValueError, TypeError, AttributeError):
        pass  # raised outside: what was given may be anything, and stands in the error
    raise missing("nothing has this id")


def check_seconds(field: str, value: object) -> None:
    """Raise InvalidInput unless `value` is a number of seconds, which may be infinite. NaN would never be over."""
    try:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    except OverflowError:  # an integer beyond floats
        is_number = False
    if not is_number:
        raise InvalidInput(field, "give a number of seconds")


def check_text(field: str, value: object, length: int) -> None:
    """Raise InvalidInput unless `value` is None or 1 to `length` printable characters."""
    if value is None:
        return
    if not isinstance(value, str) or not 0 < len(value) <= length or not value.isprintable():
        raise InvalidInput(field, f"give 1 to {length} printable characters")


def check_reason(reason: object, *, required: bool = True) -> None:
    """Raise InvalidInput unless `reason` is a text that every database can hold, and says something if `required`."""
    if not isinstance(reason, str) or (required and not reason.strip()):
        raise InvalidInput("reason", "say why, for those who read this later", code="required")
    if len(reason) > MAX_REASON:
        raise InvalidInput("reason", f"give at most {MAX_REASON} characters")
    if "\0" in reason or not _is_encodable(reason):
        raise InvalidInput("reason", "it holds U+0000 or half a surrogate pair, which not every database can store")


def check_metadata(metadata: object) -> None:
    """Raise InvalidInput unless `metadata` is None or what the API takes as such."""
    if metadata is None:
        return
    if not isinstance(metadata, Mapping) or len(metadata) > MAX_PAIRS:
        raise InvalidInput("metadata", f"give at most {MAX_PAIRS} pairs of strings")
    for name, value in metadata.items():
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
            raise InvalidInput("metadata", f"its keys are strings of 1 to {MAX_NAME} characters")
        if not _is_encodable(name):
            raise InvalidInput("metadata", "a key holds an unpaired surrogate, which JSON cannot carry")
        if not isinstance(value, str) or len(value) > MAX_VALUE:
            raise InvalidInput(f"metadata.{name}", f"give a string of at most {MAX_VALUE} characters")
        if not _is_encodable(value):
            raise InvalidInput(f"metadata.{name}", "it holds an unpaired surrogate, which JSON cannot carry")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
