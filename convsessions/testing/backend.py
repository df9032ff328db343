"""What a check needs of an implementation, and what a check is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any


class NotApplicable(Exception):
    """The implementation has nothing that this check could be about, such as replies that get lost."""


class Backend(ABC):
    """An implementation of the `Session` protocol under test. Each check gets a new one, with no history."""

    @abstractmethod
    def open(self, name: str, **options: Any) -> Any:
        """A new session object for the history called `name`: another object for the same name, the same history.

        `options`: for the session's constructor (`session_settings`). Where a history has no name before its first
        write, `open_again` gives the second object.
        """

    async def open_again(self, name: str, session: Any) -> Any:
        """Another object for the history of `session`, which was opened as `name`."""
        return self.open(name)

    def lose_replies(self, count: int) -> None:
        """From now on, lose the replies to the next `count` requests that append. Raises NotApplicable."""
        raise NotApplicable("there are no replies to lose")

    def requests(self) -> int:
        """How many requests were made so far. Raises NotApplicable."""
        raise NotApplicable("there are no requests to count")

    def be_slow(self, seconds: float) -> None:
        """From now on, have each request take `seconds`. Raises NotApplicable."""
        raise NotApplicable("there are no requests to slow down")


Body = Callable[[Backend], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Check:
    """One property of the protocol. `body` raises AssertionError, or whatever the implementation raises."""

    body: Body

    @property
    def name(self) -> str:
        return self.body.__name__

    @property
    def says(self) -> str:
        """The property, in a sentence."""
        return (self.body.__doc__ or "").strip().splitlines()[0].removesuffix(".")


async def run_check(check: Check, backend: Backend) -> None:
    """Run one check. Raises NotApplicable, AssertionError, or whatever the implementation raises."""
    await check.body(backend)
