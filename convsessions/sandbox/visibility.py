"""What reading an item shows of it: some content only on request, some never again. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from .errors import invalid

Item = dict[str, Any]

INCLUDABLE = frozenset(
    {
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
    }
)
"""Documented values of ``include[]``."""


def check_include(values: list[str]) -> frozenset[str]:
    """The values of ``include[]``. Raises ApiError for an unknown one."""
    for index, value in enumerate(values):
        if value not in INCLUDABLE:
            raise invalid("invalid_value", f"include[{index}]", "This cannot be included.")
    return frozenset(values)


def visible(item: Item, include: Collection[str]) -> Item:
    """A copy of a stored item as the API shows it with these ``include[]`` values.

    Documented: image addresses, screenshots, logprobs, encrypted content and sources must be asked for. The API sends
    some of what is hidden as null and leaves some out; both occur here.
    """
    shown = _lost({**item})
    hide = _HIDDEN.get(shown["type"])
    return hide(shown, include) if hide else shown


def _lost(item: Item) -> Item:
    """Reported: these never come back, whatever is asked for."""
    for name in {"message": ["phase"], "shell_call": ["environment"]}.get(item["type"], []):
        item.pop(name, None)
    for name in {"file_search_call": ["results"], "code_interpreter_call": ["outputs"]}.get(item["type"], []):
        item[name] = None
    return item


def _hide_in_message(item: Item, include: Collection[str]) -> Item:
    parts = [{**part} for part in item["content"]]
    for part in parts:
        if part["type"] == "input_image" and "message.input_image.image_url" not in include:
            part["image_url"] = None
        if part["type"] == "output_text" and "message.output_text.logprobs" not in include:
            part["logprobs"] = []
    return {**item, "content": parts}


def _hide_in_reasoning(item: Item, include: Collection[str]) -> Item:
    if "reasoning.encrypted_content" not in include:
        item.pop("encrypted_content", None)
    return item


def _hide_in_screenshot(item: Item, include: Collection[str]) -> Item:
    if isinstance(item["output"], dict) and "computer_call_output.output.image_url" not in include:
        item["output"] = {**item["output"], "image_url": None}
    return item


def _hide_in_search(item: Item, include: Collection[str]) -> Item:
    if isinstance(item["action"], dict) and "web_search_call.action.sources" not in include:
        item["action"] = {name: value for name, value in item["action"].items() if name != "sources"}
    return item


_HIDDEN: dict[str, Callable[[Item, Collection[str]], Item]] = {
    "message": _hide_in_message,
    "reasoning": _hide_in_reasoning,
    "computer_call_output": _hide_in_screenshot,
    "web_search_call": _hide_in_search,
}
