"""What is known of one ambiguous write: the journal's side, and the remote's as just read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from convsessions import operations
from convsessions.delivery.inquiry import Inspection
from convsessions.exceptions import ContentUnreadable, RemoteReadFailed
from convsessions.models import Reconciliation, WriteChunk, WriteIntent
from convsessions.states import Resolution, WriteState

from .alignment import Row, align, unread
from .owners import Owner, owners_of


@dataclass(frozen=True, slots=True)
class Section:
    """One chunk beside the remote history. `number`: counts the chunks of the write from 1; `runs`: its copies."""

    chunk: WriteChunk
    number: int
    runs: Sequence[Sequence[str]] = ()


class Situation:
    """Reads the remote once, when made. `problem`: why that, or the content, cannot be read: there is no `inspection`.

    Raises IllegalMove when the write is not ambiguous (any more), WriteNotFound.
    """

    def __init__(self, write: WriteIntent) -> None:
        self.write = write
        self.inspection: Inspection | None = None
        self.problem: RemoteReadFailed | ContentUnreadable | None = None
        try:
            self.inspection = operations.inspect_write(write.pk)
        except (RemoteReadFailed, ContentUnreadable) as error:
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
        return list(self.write.chunks.defer("payload", "original"))

    @cached_property
    def numbers(self) -> dict[int, int]:
        """The number of each chunk, from 1, by its primary key."""
        return {chunk.pk: number for number, chunk in enumerate(self.chunks, start=1)}

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
        return min((chunk.first_item for chunk in self.waiting), default=0)

    @property
    def waiting(self) -> list[WriteChunk]:
        """The chunks that wait for the one in question; sending: in doubt, and looked for before they are sent."""
        return [chunk for chunk in self.chunks if chunk.state in (WriteState.PENDING, WriteState.SENDING)]

    @property
    def in_doubt(self) -> bool:
        return any(chunk.state == WriteState.SENDING for chunk in self.waiting)

    @property
    def unsent_numbers(self) -> tuple[int, int]:
        """The numbers of the first and the last chunk that wait, from 1; (0, 0) if there is none."""
        waiting = [self.numbers[chunk.pk] for chunk in self.waiting]
        return (waiting[0], waiting[-1]) if waiting else (0, 0)

    @property
    def unsent(self) -> int:
        """Items that come after the chunk in question and wait for it."""
        return sum(chunk.item_count for chunk in self.waiting)

    @cached_property
    def sections(self) -> list[Section]:
        """The chunk in question beside what was found of it; or each chunk of which there are late copies.

        None where their content cannot be read.
        """
        runs = self.evidence.get("runs") or ()
        if isinstance(self.problem, ContentUnreadable):
            return []
        if self.chunk is not None:
            return [Section(self.chunk, self.numbers[self.chunk.pk], runs)]
        saved = {tuple(chunk.remote_ids): chunk for chunk in self.chunks if chunk.remote_ids}
        originals = [index for index, run in enumerate(runs) if tuple(run) in saved]
        if not originals:  # of a write that appends nothing, for instance
            return []
        return [
            Section(saved[tuple(runs[start])], self.numbers[saved[tuple(runs[start])].pk], runs[start:end])
            for start, end in zip(originals, [*originals[1:], len(runs)], strict=True)
        ]

    def rows(self, section: Section) -> list[Row]:
        """The items of the section's chunk beside the remote history, from the anchor on."""
        if self.inspection is None:
            return unread(section.chunk.items)
        mine = {one for run in section.runs for one in run}
        return align(
            section.chunk.items,
            self.inspection.history,
            runs=section.runs,
            parts=set(self.evidence.get("parts") or ()),
            claimed=section.chunk.remote_ids,
            owners={one: owner for one, owner in self.owners.items() if one not in mine},
        )

    @cached_property
    def owners(self) -> dict[str, Owner]:
        """What the remote ids of the session's saved chunks are bound to."""
        return owners_of(self.write.session, self.write.pk)

    @property
    def anchor(self) -> str:
        """Where the reading began: the id of the item before it; "" for the start of the conversation."""
        return self.inspection.anchor if self.inspection else (self.chunk.anchor or "" if self.chunk else "")
