"""Reading a history of any length page by page, so that nobody has to hold more of it than a page. Sans-I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from convsessions.conf import conf
from convsessions.exceptions import RemoteReadFailed
from convsessions.remote import clock
from convsessions.remote.calls import INCLUDE, ListItems
from convsessions.remote.outcomes import Outcome, Then, id_of, unknown
from convsessions.states import OutcomeKind

TRIES: Final = 3
"""Requests for one page: reading again does no harm."""


class Walk:
    """Where a reading stands that goes from the first item to the last, whatever is appended meanwhile.

    `pause`: seconds to wait before the next request. When somebody deletes the item at which it stands, it goes on
    from the one before, of the same page.
    """

    def __init__(self, conversation_id: str) -> None:
        self.ended, self.pause = False, 0.0
        self._conversation_id, self._after, self._tries = conversation_id, "", 0
        self._page: list[str] = []
        """Ids of the last page, as far as they have not turned out to be deleted."""

    def request(self) -> ListItems:
        return ListItems(
            conversation_id=self._conversation_id,
            after=self._after,
            not_after=clock.now() + conf.REQUEST_TIMEOUT,
            include=included(),
            lenient=True,
        )

    def take(self, outcome: Outcome) -> list[Any]:
        """The items that `outcome` brings, none if it has to be asked again. Raises RemoteReadFailed."""
        self.pause = 0.0
        if outcome.then is Then.READ_FROM_START and len(self._page) > 1:
            self._page.pop()
            self._after = self._page[-1]
            return []
        if outcome.kind is not OutcomeKind.APPLIED:
            self._wait(outcome)
            return []
        self._move_on(outcome)
        return outcome.items

    def _move_on(self, outcome: Outcome) -> None:
        self.ended = not outcome.data["has_more"]
        if not self.ended and outcome.cursor in {"", self._after}:
            raise read_failed(unknown("cursor_does_not_advance", status=outcome.status, request_id=outcome.request_id))
        self._after, self._tries = outcome.cursor, 0
        self._page = [item_id for item_id in map(id_of, outcome.items) if item_id]

    def _wait(self, outcome: Outcome) -> None:
        self._tries += 1
        if self._tries >= TRIES or outcome.then not in {Then.RETRY, Then.RECONCILE}:
            raise read_failed(outcome)
        first, cap = conf.RETRY_BACKOFF
        told = outcome.retry_after
        self.pause = min(first * 2.0 ** (self._tries - 1) if told is None else told, cap, conf.REQUEST_TIMEOUT)


def included() -> Sequence[str]:
    """What a reading asks for: by the setting, unlike a reconciliation, which must see everything."""
    return INCLUDE if conf.READ_INCLUDE is None else tuple(conf.READ_INCLUDE)


def read_failed(outcome: Outcome) -> RemoteReadFailed:
    """The exception for a read that ended in `outcome`."""
    return RemoteReadFailed(outcome.code, status=outcome.status, param=outcome.param, retry_after=outcome.retry_after)
