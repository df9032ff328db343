"""The history of a session as text, one JSON object an item: what a caller gave is given back as it was given.

The remote history says which items there are, and in which order. An item that a write of ours put there is written as
the journal recorded it from the caller, before anything was removed from it for the API; any other item, and one whose
content was purged from the journal, is written as the API lists it. Each text is what `codec.encode` makes of the
item: compact ASCII JSON, keys and numbers as they were.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Iterator

from convsessions.items import codec
from convsessions.journal.locking import alias
from convsessions.models import WriteChunk, WriteIntent
from convsessions.states import WriteKind, WriteState

from .reading import iter_items


def export_items(session_id: uuid.UUID, *, pending: bool = False) -> Iterator[str]:
    """The JSON texts of all items, the oldest first, read as they are asked for.

    `pending`: as if the open writes were applied already. What is in flight may be in the remote history, too, and
    then comes twice; so may what is ambiguous. In memory are a page and a chunk at a time, and the ids of what the
    journal says is saved. Raises as `iter_items`, and ContentUnreadable where the CIPHER cannot read it.
    """
    listed = iter_items(session_id)
    given = _Given(session_id)
    if not pending:
        return map(given.text, listed)
    queue = list(WriteIntent.objects.using(alias()).queue(session_id).defer("popped"))
    return _with_pending(map(given.text, listed), queue)


def _with_pending(saved: Iterator[str], queue: list[WriteIntent]) -> Iterator[str]:
    clears = [at for at, write in enumerate(queue) if write.kind == WriteKind.CLEAR]
    if clears:
        saved, queue = iter(()), queue[clears[-1] + 1 :]
    # (write, items of it that are left) in order; a pop takes from the last one, or at last from what is saved.
    added: list[list[str]] = []
    popped = 0
    for write in queue:
        if write.kind == WriteKind.APPEND:
            added.append(list(_unsaved(write)))
        elif write.kind == WriteKind.POP:
            while added and not added[-1]:
                added.pop()
            if added:
                added[-1].pop()
            else:
                popped += 1
    yield from _without_last(saved, popped)
    for texts in added:
        yield from texts


def _without_last(texts: Iterable[str], count: int) -> Iterator[str]:
    held: deque[str] = deque()
    for text in texts:
        held.append(text)
        if len(held) > count:
            yield held.popleft()


def _unsaved(write: WriteIntent) -> Iterator[str]:
    chunks = write.chunks.db_manager(alias()).filter(state__in=(WriteState.PENDING, WriteState.SENDING))
    for chunk in chunks.iterator(chunk_size=20):
        yield from _texts(chunk)


def _texts(chunk: WriteChunk) -> list[str]:
    """Its items as they were given; [] if they were purged."""
    sent = chunk.items if chunk.payload else []
    given = codec.decode(chunk.original) if chunk.original else [None] * len(sent)
    return [codec.encode(item if original is None else original) for item, original in zip(sent, given, strict=True)]


class _Given:
    """Finds what was given for an item of the remote history."""

    def __init__(self, session_id: uuid.UUID) -> None:
        saved = WriteChunk.objects.using(alias()).filter(write__session_id=session_id, state=WriteState.SAVED)
        self._places: dict[str, tuple[int, int]] = {
            item_id: (pk, at)
            for pk, ids in saved.order_by().values_list("pk", "remote_ids").iterator()
            for at, item_id in enumerate(ids)
        }
        self._open, self._texts = -1, list[str]()

    def text(self, item: object) -> str:
        item_id = item.get("id") if isinstance(item, dict) else None
        chunk_pk, at = self._places.get(item_id, (-1, -1)) if isinstance(item_id, str) else (-1, -1)
        if chunk_pk == -1:
            return codec.encode(item)
        if chunk_pk != self._open:
            self._open, self._texts = chunk_pk, _texts(WriteChunk.objects.using(alias()).get(pk=chunk_pk))
        return self._texts[at] if self._texts else codec.encode(item)
