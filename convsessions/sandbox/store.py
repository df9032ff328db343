"""Conversations and their items as rows. Each writing function opens its own short transaction."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import router, transaction
from django.db.models import F

from convsessions.items import codec

from .behaviour import Item, Prepared
from .errors import invalid, no_conversation, no_item
from .models import ID_LENGTH, SandboxConversation, SandboxEntry, SandboxItem

_ID = re.compile(rf"[A-Za-z0-9_-]{{1,{ID_LENGTH}}}", re.ASCII)


@dataclass(frozen=True)
class Page:
    """Part of a conversation in the order asked for, as stored; `has_more` is right in both directions (recorded)."""

    items: list[Item]
    has_more: bool


def new_id(prefix: str) -> str:
    """An id as the API makes them (recorded): prefix, underscore, 48 hexadecimal digits."""
    return f"{prefix}_{secrets.token_hex(24)}"


def create(metadata: dict[str, str], batch: Sequence[Prepared]) -> SandboxConversation:
    """A new conversation that begins with `batch`."""
    with _transaction():
        conversation = SandboxConversation.objects.create(
            id=new_id("conv"), created_at=int(time.time()), metadata=codec.encode(metadata)
        )
        if batch:
            append(conversation.id, batch)
    return conversation


def find(conversation_id: str) -> SandboxConversation:
    """The conversation. Raises ApiError 404 if there is none, or no longer."""
    found = SandboxConversation.objects.filter(id=_sane(conversation_id), deleted=False).first()
    if found is None:
        raise no_conversation()
    return found


def set_metadata(conversation_id: str, metadata: dict[str, str]) -> SandboxConversation:
    """Replaces all metadata (recorded)."""
    conversation = find(conversation_id)
    conversation.metadata = codec.encode(metadata)
    conversation.save(update_fields=["metadata"])
    return conversation


def delete(conversation_id: str) -> None:
    """Ends the conversation. Raises ApiError 404 the second time (reported). Its items stay (documented)."""
    if not SandboxConversation.objects.filter(id=_sane(conversation_id), deleted=False).update(deleted=True):
        raise no_conversation()


def append(conversation_id: str, batch: Sequence[Prepared]) -> list[Item]:
    """Puts `batch` at the end of the conversation, all of it or, raising ApiError, nothing; returns it as stored."""
    with _transaction():
        first = _reserve(conversation_id, len(batch))
        items, new_items = _resolve(conversation_id, batch)
        SandboxItem.objects.bulk_create(new_items)
        SandboxEntry.objects.bulk_create(
            SandboxEntry(conversation_id=conversation_id, item=item, position=first + index)
            for index, item in enumerate(items)
        )
    return [item.as_json() for item in items]


def _reserve(conversation_id: str, count: int) -> int:
    """The first of `count` places at the end.

    The update comes first in its transaction: it locks the row (on SQLite the database) until the commit, so that a
    second append waits here and comes behind the first one as a whole.
    """
    row = SandboxConversation.objects.filter(id=_sane(conversation_id), deleted=False)
    if not row.update(next_position=F("next_position") + count):
        raise no_conversation()
    return row.values_list("next_position", flat=True).get() - count


def _resolve(conversation_id: str, batch: Sequence[Prepared]) -> tuple[list[SandboxItem], list[SandboxItem]]:
    """The item rows of `batch` in order, and those of them that are new."""
    given = [prepared.given_id for prepared in batch if _ID.fullmatch(prepared.given_id)]
    known = SandboxItem.objects.in_bulk(given) if given else {}
    if known and SandboxEntry.objects.filter(conversation_id=conversation_id, item_id__in=known).exists():
        raise invalid("item_already_in_conversation", "items", "An item of this id is already in the conversation.")
    items = [known.get(prepared.given_id) or _new_item(prepared) for prepared in batch]
    return items, [item for item in items if item.id not in known]


def _new_item(prepared: Prepared) -> SandboxItem:
    """A row under an id of our own: ids of clients are not kept (reported)."""
    if prepared.is_reference:
        raise no_item("items")
    item_id = new_id(prepared.prefix)
    return SandboxItem(id=item_id, payload=codec.encode(prepared.stored(item_id)))


def page(
    conversation_id: str, *, descending: bool = True, limit: int | None = 20, after: str = "", hide_newest: int = 0
) -> Page:
    """`limit` items behind the item `after`, without the `hide_newest` last of the conversation.

    Raises ApiError 404, with param ``after`` for a cursor that is not there (recorded). Where an id stands twice, the
    place that comes first in the order asked for counts (not known of the API).
    """
    conversation = find(conversation_id)
    entries = SandboxEntry.objects.filter(conversation=conversation).order_by("-position" if descending else "position")
    cursor = _position(conversation_id, after, descending) if after else None
    if hide_newest:
        newest = SandboxEntry.objects.filter(conversation=conversation).order_by("-position")[:hide_newest]
        entries = entries.exclude(pk__in=[entry.pk for entry in newest])
    if cursor is not None:
        entries = entries.filter(**{"position__lt" if descending else "position__gt": cursor})
    found = [entry.item.as_json() for entry in entries.select_related("item")[: limit and limit + 1]]
    return Page(found[:limit], limit is not None and len(found) > limit)


def _position(conversation_id: str, item_id: str, descending: bool) -> int:
    places = SandboxEntry.objects.filter(conversation_id=conversation_id, item_id=_sane(item_id))
    place = places.order_by("-position" if descending else "position").first()
    if place is None:
        raise no_item("after")
    return place.position


def find_item(conversation_id: str, item_id: str) -> Item:
    """The stored item. Raises ApiError 404 for an unknown conversation or item (reported)."""
    find(conversation_id)
    entry = (
        SandboxEntry.objects.filter(conversation_id=conversation_id, item_id=_sane(item_id))
        .select_related("item")
        .first()
    )
    if entry is None:
        raise no_item()
    return entry.item.as_json()


def delete_item(conversation_id: str, item_id: str) -> SandboxConversation:
    """Takes the item out of this conversation; its content stays where another conversation shows it."""
    conversation = find(conversation_id)
    with _transaction():
        removed, _ = SandboxEntry.objects.filter(conversation=conversation, item_id=_sane(item_id)).delete()
        if not removed:
            raise no_item()
        SandboxItem.objects.filter(id=item_id, entries=None).delete()
    return conversation


def everything(conversation_id: str) -> dict[str, Any]:
    """The ground truth for tests: all items as stored, in order, of a deleted conversation too."""
    conversation = SandboxConversation.objects.filter(id=_sane(conversation_id)).first()
    if conversation is None:
        raise no_conversation()
    entries = SandboxEntry.objects.filter(conversation=conversation).order_by("position").select_related("item")
    items = [entry.item.as_json() for entry in entries]
    return {**conversation.as_json(), "deleted": conversation.deleted, "items": items}


def _sane(given_id: str) -> str:
    """`given_id`, or an empty text that names nothing: PostgreSQL cannot even be asked for a U+0000."""
    return given_id if _ID.fullmatch(given_id) else ""


def _transaction() -> transaction.Atomic:
    return transaction.atomic(using=router.db_for_write(SandboxConversation))
