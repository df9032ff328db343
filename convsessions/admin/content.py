"""The content of a write: people's conversations, shown on demand to whoever may see them, as text and cut."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext

from convsessions.exceptions import ContentUnreadable
from convsessions.models import WriteChunk, WriteIntent

from .display import CONTENT_UNREADABLE

if TYPE_CHECKING:
    from .writes import WriteAdmin

MOST_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Shown:
    """One item: `position` in the write, from 0; `text` is cut if `cut`."""

    position: int
    label: str
    text: str = field(repr=False)  # Django logs contexts of templates at DEBUG
    cut: bool


def show(model_admin: WriteAdmin, request: HttpRequest, write: WriteIntent) -> HttpResponse:
    """A page with the items of one chunk (``?chunk=`` its first item), or one item in full (``?item=``)."""
    item, start = _number(request, "item"), _number(request, "chunk")
    chunk = _chunk_at(write, start if item is None else item)
    items, unreadable = _items_or_why_not(chunk, write)
    shown = [shown_item(position, one) for position, one in items if item is None]
    shown += [_whole(position, one) for position, one in items if position == item]
    return model_admin.page(
        request,
        "writeintent/content.html",
        title=gettext("Content of %(write)s") % {"write": str(write)[:15]},
        original=write,
        write=write,
        shown=shown,
        unreadable=unreadable,
        whole=item is not None,
        chunk=chunk,
        before=_first_item(chunk, write.chunks.order_by("-first_item"), "lt"),
        after=_first_item(chunk, write.chunks.order_by("first_item"), "gt"),
    )


def shown_item(position: int, item: dict[str, Any], most: int = MOST_CHARACTERS) -> Shown:
    """An item with at most `most` characters of its text."""
    text = text_of(item)
    return Shown(position, label_of(item), text[:most], len(text) > most)


def label_of(item: dict[str, Any]) -> str:
    """What kind of item it is, without content, as in "message · user"; its text is not in it."""
    names = (item.get("type") or "message", item.get("role"), item.get("name"))
    return " · ".join(str(name) for name in names if name)


def text_of(item: dict[str, Any]) -> str:
    """The text of a message where it has nothing else, otherwise the whole item as JSON."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    if texts and len(texts) == len(parts):
        return "\n".join(texts)
    return json.dumps(item, ensure_ascii=False, indent=2)


def _whole(position: int, item: dict[str, Any]) -> Shown:
    return Shown(position, label_of(item), json.dumps(item, ensure_ascii=False, indent=2), cut=False)


def _items_or_why_not(
    chunk: WriteChunk | None, write: WriteIntent
) -> tuple[list[tuple[int, dict[str, Any]]], Promise | str]:
    try:
        return _items(chunk, write), ""
    except ContentUnreadable:
        return [], CONTENT_UNREADABLE


def _items(chunk: WriteChunk | None, write: WriteIntent) -> list[tuple[int, dict[str, Any]]]:
    if chunk is not None:
        return list(enumerate(chunk.items, start=chunk.first_item)) if chunk.payload else []
    return [(0, write.popped)] if write.popped else []


def _chunk_at(write: WriteIntent, position: int | None) -> WriteChunk | None:
    """The chunk that holds the item at `position`, else the first one."""
    before = write.chunks.filter(first_item__lte=position or 0).order_by("-first_item")
    return before.first()


def _first_item(chunk: WriteChunk | None, chunks: Any, side: str) -> int | None:
    """Where the next of `chunks` begins on one side of `chunk`."""
    if chunk is None:
        return None
    first: int | None = (
        chunks.filter(**{f"first_item__{side}": chunk.first_item}).values_list("first_item", flat=True).first()
    )
    return first


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None
