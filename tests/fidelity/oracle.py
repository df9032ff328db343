"""What must come of an item, said apart from the code under test and from the sandbox."""

from __future__ import annotations

import json
from typing import Any

Item = dict[str, Any]

MUST_BE_THERE = {
    ("code_interpreter_call", "code"),
    ("code_interpreter_call", "outputs"),
    ("image_generation_call", "result"),
}
"""Fields that may be null but not be left out."""

WITH_PARTS = {
    "message": ("content",),
    "reasoning": ("summary", "content"),
    "function_call_output": ("output",),
    "custom_tool_call_output": ("output",),
    "computer_call_output": ("output",),
    "shell_call_output": ("output",),
    "code_interpreter_call": ("outputs",),
}
NEVER_COMES_BACK = {
    "message": ("phase",),
    "shell_call": ("environment",),
    "file_search_call": ("results",),
    "code_interpreter_call": ("outputs",),
}
"""Reported of the real API."""


def exactly(value: Any) -> str:
    """JSON in which equal values are equal to the last digit, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True)


def as_sent(item: Item, keeps_id: bool) -> str:
    """The JSON that must go out: the caller's, in the caller's order, without what the API refuses."""
    kind = item.get("type", "message")
    kept = {
        key: value
        for key, value in item.items()
        if (value is not None or (kind, key) in MUST_BE_THERE) and (key != "id" or keeps_id)
    }
    for field in WITH_PARTS.get(kind, ()):
        if field in kept:
            kept[field] = _without_nulls(kept[field])
    return json.dumps(kept, separators=(",", ":"))


def as_stored(sent: Item, stored: Item) -> Item:
    """What a faithful server has of `sent`; `stored` tells only the id and the status that it gave itself."""
    expected = {"type": "message", **sent, "id": stored["id"]}
    if "status" not in sent and "status" in stored:
        expected["status"] = "completed"
    if expected["type"] == "message":
        expected["content"] = _parts(sent["content"], sent["role"])
    return expected


def without_losses(item: Item) -> Item:
    return {key: value for key, value in item.items() if key not in NEVER_COMES_BACK.get(item["type"], ())}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return {key: field for key, field in value.items() if field is not None} if isinstance(value, dict) else value


def _parts(content: Any, role: str) -> list[Item]:
    kind = "output_text" if role == "assistant" else "input_text"
    parts = [{"type": kind, "text": content}] if isinstance(content, str) else content
    defaults = {"output_text": {"annotations": [], "logprobs": []}, "input_image": {"detail": "auto"}}
    return [{**defaults.get(part["type"], {}), **part} for part in parts]
