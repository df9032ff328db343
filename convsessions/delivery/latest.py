"""Reading the newest items of a conversation. Sans-I/O: yields requests and is sent outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from convsessions.reconcile.reading import Deadline, History, Requests
from convsessions.remote.calls import INCLUDE, PAGE_ITEMS, ListItems
from convsessions.remote.outcomes import Then, unknown
from convsessions.states import OutcomeKind

MAX_RESTARTS = 5
"""Times that a read begins again because somebody deleted the item at which it stood."""


def read_latest(
    conversation_id: str,
    count: int,
    next_deadline: Deadline,
    *,
    include: Sequence[str] = INCLUDE,
    lenient: bool = False,
) -> Requests:
    """Read the newest `count` items, and one more if there is one, so that it is known; the oldest first.

    `include`, `lenient`: as `ListItems` has them. A `History` with a `problem` is incomplete.
    """
    history, after, restarts = History(), "", 0
    while True:
        # One more than is asked for tells whether there are older ones, whatever the last page says.
        limit = min(count + 1 - len(history.items), PAGE_ITEMS)
        outcome = yield ListItems(
            conversation_id=conversation_id,
            after=after,
            order="desc",
            limit=limit,
            not_after=next_deadline(),
            include=include,
            lenient=lenient,
        )
        assert outcome is not None  # noqa: S101 - a request is always answered with an outcome
        history.pages += 1
        if outcome.then is Then.READ_FROM_START and after and restarts < MAX_RESTARTS:
            history, after, restarts = History(pages=history.pages), "", restarts + 1
            continue
        if outcome.kind is not OutcomeKind.APPLIED:
            history.problem = outcome
            return history
        history.items += outcome.items
        if not outcome.data["has_more"] or len(history.items) > count:
            history.items.reverse()
            return history
        if not outcome.cursor or outcome.cursor == after:
            history.problem = unknown("cursor_does_not_advance", status=outcome.status, request_id=outcome.request_id)
            return history
        after = outcome.cursor
