"""The history checker: what a conversation must hold, and what it holds too much or too little of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import WriteKind, WriteState

FOREIGN = "A foreign writer was here."
"""What the sandbox's foreign writer appends: nobody's loss and nobody's double."""


@dataclass(slots=True)
class Tally:
    """Of all conversations: how many are exact, ambiguous (a person is asked) or wrong; items doubled and lost.

    `asked_without_need`: how many of the ambiguous ones no foreign writer and no doubling proxy had touched.
    """

    exact: int = 0
    ambiguous: int = 0
    asked_without_need: int = 0
    wrong: int = 0
    doubled: int = 0
    lost: int = 0
    reports: list[str] = field(default_factory=list)

    def add(
        self, name: str, expected: Sequence[str], stored: Sequence[str], *, asked: bool, undecidable: bool = True
    ) -> None:
        """Judge one conversation. `asked`: a person has been asked about it; `undecidable`: with good reason."""
        if asked:
            self.ambiguous += 1
            self.asked_without_need += not undecidable
            return
        if list(expected) == list(stored):
            self.exact += 1
            return
        self.wrong += 1
        self.doubled += sum((Counter(stored) - Counter(expected)).values())
        self.lost += sum((Counter(expected) - Counter(stored)).values())
        self.reports.append(f"{name}: expected {len(expected)} items, stored {len(stored)}")


def expected_texts(session: ConversationSession) -> list[str]:
    """What the journal says the conversation holds: every item of it that is saved, in the order of the writes."""
    history: list[str] = []
    for write in session.writes.order_by("sequence").prefetch_related("chunks"):
        if write.kind == WriteKind.APPEND:
            history += _saved_texts(write)
        elif write.state == WriteState.SAVED and write.kind == WriteKind.CLEAR:
            history = []
        elif write.state == WriteState.SAVED and write.popped:
            popped = write.popped["content"][0]["text"]
            if popped == FOREIGN:  # it was the newest one then
                continue
            assert history, f"write {write.pk} popped from an empty history"
            assert history.pop() == popped, f"write {write.pk} popped another item"
    return history


def _saved_texts(write: WriteIntent) -> list[str]:
    saved = [chunk for chunk in write.chunks.all() if chunk.state == WriteState.SAVED]
    # What was erased is no part of what is expected: a clear has taken it away.
    return [item["content"] for chunk in saved if chunk.payload for item in chunk.items]
