"""Reading the remote history after an anchor, to its end. Sans-I/O: yields requests and is sent outcomes.

A read is *complete* only if every page came, each cursor moved on, and the last page said so; an incomplete read
decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from convsessions.remote.calls import INCLUDE, ListItems, Pause, RemoteCall
from convsessions.remote.outcomes import Outcome, Then, unknown
from convsessions.states import OutcomeKind

Requests = Generator[RemoteCall | Pause, Outcome | None, "History"]
Deadline = Callable[[], float]

MAX_RESTARTS = 5
"""Times that a read begins again because somebody deleted the item at which it stood."""


@dataclass(slots=True)
class History:
    """`items` after the anchor in order; `problem` why the read is incomplete; `anchor_gone`: read from the start."""

    items: list[dict[str, Any]] = field(default_factory=list)
    pages: int = 0
    anchor_gone: bool = False
    problem: Outcome | None = None

    @property
    def complete(self) -> bool:
        return self.problem is None


def read_history(
    conversation_id: str, anchor: str, next_deadline: Deadline, include: Sequence[str] = INCLUDE
) -> Requests:
    """Read everything after `anchor` (empty: from the start); where the anchor was deleted, the whole history.

    `next_deadline` gives the `not_after` of the next request; `include`: what to ask for, as the API names it.
    """
    history = History()
    after, cursors, restarts = anchor, {anchor}, 0
    while True:
        outcome = yield ListItems(
            conversation_id=conversation_id, after=after, not_after=next_deadline(), include=include
        )
        assert outcome is not None  # noqa: S101 - a request is always answered with an outcome
        history.pages += 1
        if outcome.then is Then.READ_FROM_START and after and restarts < MAX_RESTARTS:
            # Somebody deleted the anchor: begin again without a cursor. Or an item in the middle of the read: begin
            # again at the anchor, which still marks where to look.
            restarts += 1
            gone = history.anchor_gone or after == anchor
            history = History(pages=history.pages, anchor_gone=gone)
            after = "" if gone else anchor
            cursors = {after}
            continue
        if outcome.kind is not OutcomeKind.APPLIED:
            history.problem = outcome
            return history
        history.items += outcome.items
        if not outcome.data["has_more"]:
            return history
        after = outcome.cursor
        if after in cursors:  # an empty page that says there is more, or a server that repeats a page for ever
            history.problem = unknown("cursor_does_not_advance", status=outcome.status, request_id=outcome.request_id)
            return history
        cursors.add(after)
