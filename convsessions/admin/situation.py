"""What is known of one ambiguous write: the journal's side, and the remote's as just read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from convsessions import operations
from convsessions.exceptions import RemoteReadFailed
from convsessions.models import Reconciliation, WriteChunk, WriteIntent
from convsessions.states import Resolution, WriteState

from .content import label_of, shown_item

MOST_TEXT = 160
"""Characters of an item beside what was found."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One appearance of a chunk in the remote history; `extra`: beyond the one that is kept."""

    ids: Sequence[str]
    extra: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One item as it was sent, and its id in each copy; `text` is "" for those who may not see content."""

    position: int
    label: str
    text: str
    cut: bool
    ids: Sequence[tuple[str, bool]]


@dataclass(slots=True)
class Section:
    """One chunk beside its copies."""

    chunk: WriteChunk
    number: int
    copies: list[Copy] = field(default_factory=list)

    def lines(self, *, with_text: bool) -> list[Line]:
        """The items of the chunk in order, aligned with the copies."""
        return [self._line(offset, item, with_text) for offset, item in enumerate(self.chunk.items)]

    def _line(self, offset: int, item: dict[str, Any], with_text: bool) -> Line:
        position = self.chunk.first_item + offset
        ids = [(copy.ids[offset], copy.extra) for copy in self.copies if offset < len(copy.ids)]
        if not with_text:
            return Line(position, label_of(item), "", False, ids)
        shown = shown_item(position, item, MOST_TEXT)
        return Line(position, shown.label, shown.text, shown.cut, ids)


class Situation:
    """Reads the remote once, when made. `problem`: why it could not be read; then there is no `inspection`.

    Raises IllegalMove when the write is not ambiguous (any more), WriteNotFound.
    """

    def __init__(self, write: WriteIntent) -> None:
        self.write = write
        self.inspection, self.problem = None, None
        try:
            self.inspection = operations.inspect_write(write.pk)
        except RemoteReadFailed as error:
            self.problem = error

    @property
    def verdict(self) -> str:
        return self.inspection.verdict if self.inspection else ""

    @property
    def evidence(self) -> dict[str, Any]:
        return self.inspection.evidence if self.inspection else {}

    @property
    def token(self) -> str:
        return self.inspection.token if self.inspection else ""

    @property
    def possible(self) -> list[Resolution]:
        """Without a reading of the remote: to read it later, or to leave it as it is."""
        return self.inspection.possible if self.inspection else [Resolution.RECHECK, Resolution.ABANDON]

    @cached_property
    def chunks(self) -> list[WriteChunk]:
        return list(self.write.chunks.defer("payload"))

    @cached_property
    def chunk(self) -> WriteChunk | None:
        """The chunk in question; None when all are saved and late copies were found."""
        return next((chunk for chunk in self.chunks if chunk.state == WriteState.AMBIGUOUS), None)

    @cached_property
    def last_look(self) -> Reconciliation | None:
        """What made the write ambiguous."""
        return self.write.reconciliations.order_by("-pk").first()

    @property
    def extra(self) -> list[str]:
        return list(self.evidence.get("extra") or ())

    @property
    def present(self) -> list[str]:
        """Every remote id that is or seems to be of this write, as a rollback would delete them."""
        saved = chain.from_iterable(chunk.remote_ids for chunk in self.chunks)
        runs = chain.from_iterable(self.evidence.get("runs") or ())
        return list(dict.fromkeys([*saved, *runs, *(self.evidence.get("parts") or ())]))

    @property
    def first_unsent(self) -> int:
        """The position of the first item that waits for the chunk in question."""
        return min((chunk.first_item for chunk in self.chunks if chunk.state == WriteState.PENDING), default=0)

    @property
    def unsent(self) -> int:
        """Items that come after the chunk in question and wait for it."""
        return sum(chunk.item_count for chunk in self.chunks if chunk.state == WriteState.PENDING)

    @cached_property
    def sections(self) -> list[Section]:
        """The chunk in question beside what was found of it; or each chunk of which there are late copies."""
        numbers = {chunk.pk: number for number, chunk in enumerate(self.chunks, start=1)}
        if self.chunk is not None:
            runs = [Copy(run, extra=index > 0) for index, run in enumerate(self.evidence.get("runs") or ())]
            return [Section(self.chunk, numbers[self.chunk.pk], runs)]
        return self._sections_of_copies(numbers)

    def _sections_of_copies(self, numbers: dict[int, int]) -> list[Section]:
        saved = {tuple(chunk.remote_ids): chunk for chunk in self.chunks if chunk.remote_ids}
        sections: list[Section] = []
        for run in self.evidence.get("runs") or ():
            chunk = saved.get(tuple(run))
            if chunk is not None:
                sections.append(Section(chunk, numbers[chunk.pk]))
            if sections:
                sections[-1].copies.append(Copy(run, extra=chunk is None))
        return sections
