"""Writing stored content anew under the newest key, a few rows at a time."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from django.db import models, transaction
from django.db.models import ExpressionWrapper, F, Q, QuerySet

from convsessions import ciphers
from convsessions.exceptions import ContentUnreadable
from convsessions.models import WriteChunk, WriteIntent
from convsessions.models.fields import Sealed

from .locking import lock_session


@dataclass(frozen=True, slots=True)
class Holder:
    """A table that holds content: in which columns, whose session it is, and how many items a row has."""

    model: Any
    columns: tuple[str, ...]
    session: str
    items: str
    has_content: Q

    def rows(self, *, using: str) -> QuerySet[Any]:
        """Those that hold content."""
        rows: QuerySet[Any] = self.model.objects.using(using)
        return rows.filter(self.has_content)

    def stored(self, keys: Sequence[Any], *, using: str) -> list[tuple[Any, ...]]:
        """The primary key of each row, and its columns as they are stored."""
        raw = {f"raw_{name}": ExpressionWrapper(F(name), output_field=models.TextField()) for name in self.columns}
        return list(self.rows(using=using).filter(pk__in=keys).order_by().annotate(**raw).values_list("pk", *raw))


HOLDERS = (
    Holder(WriteChunk, ("payload", "original"), "write__session_id", "item_count", ~Q(payload="")),
    Holder(WriteIntent, ("popped",), "session_id", "items_total", Q(popped__isnull=False)),
)


class Fate(Enum):
    """What becomes of a row: it is written anew, or needs not be, or cannot be read, and stays as it is."""

    REWRITTEN = "rewritten"
    CURRENT = "current"
    UNREADABLE = "unreadable"


def rewrite(holder: Holder, session_id: uuid.UUID, keys: Sequence[Any], *, using: str) -> Counter[Fate]:
    """Write the content of rows of one session anew, as far as it is not under the newest key; returns their fates.

    Opens its own transaction. The session's lock holds off whoever changes content: a worker who cuts a chunk, a purge,
    an erasing clear. What they did before is read here, so that nothing of it is undone. Raises SessionNotFound, and
    ContentUnreadable where nothing can be encrypted at all.
    """
    fates: Counter[Fate] = Counter()
    with transaction.atomic(using=using, durable=True):
        lock_session(session_id, using=using)
        for key, *stored in holder.stored(keys, using=using):
            fate, changed = _judge(holder, stored)
            fates[fate] += 1
            if changed:
                sealed = {name: Sealed(ciphers.seal(text)) for name, text in changed.items()}
                holder.model.objects.using(using).filter(pk=key).update(**sealed)
    return fates


def examine(holder: Holder, keys: Sequence[Any], *, using: str) -> Counter[Fate]:
    """What `rewrite` would do now; changes nothing, and locks nothing."""
    return Counter(_judge(holder, stored)[0] for _, *stored in holder.stored(keys, using=using))


def _judge(holder: Holder, stored: Sequence[str | None]) -> tuple[Fate, dict[str, str]]:
    """The fate of a row, and the plain text of the columns to be written anew."""
    old = {
        name: text
        for name, text in zip(holder.columns, stored, strict=True)
        if text is not None and not ciphers.is_current(text)
    }
    try:
        plain = {name: ciphers.unseal(text) for name, text in old.items()}
    except ContentUnreadable:
        return Fate.UNREADABLE, {}
    return (Fate.REWRITTEN if plain else Fate.CURRENT), plain
